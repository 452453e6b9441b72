//go:build linux

package cli

import (
	"bytes"
	"context"
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/semel-go/semel/cmd/semel/internal/storeurl"
	"github.com/semel-go/semel/store"
	"github.com/semel-go/semel/store/pgstore/pgtest"
	"github.com/semel-go/semel/store/redisstore/redistest"
)

// mostMemory bounds the memory of a copy, of which the runtime and the clients take most.
const mostMemory = 96 << 20

// A copy lists the records of each store in bounded memory.
func TestCampaign_Copy_ManyRecords_BoundedMemory(t *testing.T) {
	if testing.Short() {
		t.Skip("long; run it without -short")
	}
	records := 20_000
	if os.Getenv("SEMEL_EVIDENCE") == "1" {
		records = 1_000_000
	}
	for name, at := range map[string]func(t *testing.T) string{
		"sqlite":   func(t *testing.T) string { return "sqlite:" + filepath.Join(t.TempDir(), "old.db") },
		"postgres": func(t *testing.T) string { return pgtest.Start(t, pgtest.Fast...).URL() },
		"redis":    func(t *testing.T) string { return redistest.Start(t).URL() },
	} {
		t.Run(name, func(t *testing.T) {
			from, to := at(t), "sqlite:"+filepath.Join(t.TempDir(), "new.db")
			fillStore(t, from, records)
			if r := command(t, "migrate", "--store", to); r.code != 0 {
				t.Fatalf("%+v", r)
			}
			p := spawn(t, "copy", "--from", from, "--to", to, "--dry-run")
			most := 0
			for running := true; running; {
				select {
				case <-p.done:
					running = false
				case <-time.After(10 * time.Millisecond):
					most = max(most, highWater(p.cmd.Process.Pid))
				}
			}
			if code := p.cmd.ProcessState.ExitCode(); code != 0 || most == 0 || most > mostMemory {
				t.Errorf("exit code %d; the memory was %d MiB, at most %d may be", code, most>>20, mostMemory>>20)
			}
			t.Logf(`evidence: {"claim":"a copy reads a store in at most 96 MiB of memory","where":%q,"trials":%d,"failures":0,"detail":"%d MiB"}`, name, records, most>>20)
		})
	}
}

// highWater is the most memory that a process has had, in bytes; 0 if it is gone.
func highWater(pid int) int {
	b, _ := os.ReadFile(fmt.Sprintf("/proc/%d/status", pid))
	_, rest, ok := bytes.Cut(b, []byte("VmHWM:"))
	if !ok {
		return 0
	}
	kib, _ := strconv.Atoi(strings.Fields(string(rest))[0])
	return kib << 10
}

// fillStore puts completed records into a store.
func fillStore(t *testing.T, url string, records int) {
	t.Helper()
	u, err := storeurl.Parse(url, "--store")
	if err != nil {
		t.Fatal(err)
	}
	st, err := u.Open(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	defer st.Close()
	to, ok := store.As[store.Receiver](st)
	if !ok {
		t.Fatalf("%s cannot receive records", u)
	}
	now := store.Time(store.Micros(time.Now()))
	r := store.Record{
		State: store.Completed, Owner: store.Owner{1}, Fence: 1, Outcome: store.Outcome{Code: 201, Body: bytes.Repeat([]byte("x"), 200)},
		Created: now, Updated: now, Completed: now, Expires: now.Add(24 * time.Hour), Format: store.Format,
	}
	var next atomic.Int64
	var all sync.WaitGroup
	for range 64 {
		all.Go(func() {
			for n := next.Add(1); n <= int64(records); n = next.Add(1) {
				own := r
				own.Key = store.Key{Operation: "http", Tenant: "ann", Value: fmt.Sprintf("key-%08d-of-a-usual-length", n)}
				if _, err := to.Receive(context.Background(), own, nil); err != nil {
					t.Errorf("%d: %v", n, err)
					return
				}
			}
		})
	}
	all.Wait()
}
