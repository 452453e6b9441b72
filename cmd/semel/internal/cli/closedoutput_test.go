//go:build unix

package cli

import (
	"bytes"
	"errors"
	"net/http"
	"net/http/httptest"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/semel-go/semel/store"
)

// withoutReader runs semel with a standard output that nobody reads. A nil stop waits for its
// end.
func withoutReader(t *testing.T, stop func(p *os.Process), args ...string) (code int, stderr string) {
	t.Helper()
	path, err := binary()
	if err != nil {
		t.Fatal(err)
	}
	built.Store(true)
	reader, writer, err := os.Pipe()
	if err != nil {
		t.Fatal(err)
	}
	_ = reader.Close()
	defer func() { _ = writer.Close() }()
	cmd := exec.Command(path, args...)
	var said bytes.Buffer
	cmd.Stdout, cmd.Stderr = writer, &said
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	if stop != nil {
		stop(cmd.Process)
	}
	_ = cmd.Wait() // the exit code tells
	return cmd.ProcessState.ExitCode(), said.String()
}

// semel erase … | head: the erasure goes to its end, and the trail has its result.
func TestErase_NobodyReadsOutput_ErasesAll(t *testing.T) {
	t.Parallel()
	url, _ := seed(t)
	path := filepath.Join(t.TempDir(), "trail")
	code, said := withoutReader(t, nil, "erase", "--tenant", "ann", "--yes", "--reason", "r", "--store", url, "--audit", path)
	if code != 1 || !strings.Contains(said, "broken pipe") {
		t.Errorf("exit code %d, want 1 and the reason: %s", code, said)
	}
	lines := trail(t, path)
	if len(lines) != 2 || lines[1]["result"] != "partly done" || lines[1]["erased"] == 0.0 {
		t.Errorf("the trail has %v", lines)
	}
	if left := commandIn(t, nil, "", "erase", "--tenant", "ann", "--store", url); !strings.Contains(left.stdout, "would erase 0 records") {
		t.Errorf("after it: %+v", left)
	}
}

func TestInspectList_NobodyReadsOutput_ExitFailed(t *testing.T) {
	t.Parallel()
	url, _ := seed(t)
	if code, said := withoutReader(t, nil, "inspect", "list", "--store", url); code != 1 || !strings.Contains(said, "broken pipe") {
		t.Errorf("exit code %d, want 1 and the reason: %s", code, said)
	}
}

func TestSweep_NobodyReadsOutput_GoesOn(t *testing.T) {
	t.Parallel()
	url, st := seed(t)
	code, said := withoutReader(t, func(p *os.Process) {
		k := store.Key{Operation: "http", Tenant: "ann", Value: "short"}
		for pass := range 3 {
			if _, err := st.Claim(t.Context(), store.Proposal{Key: k, State: store.Completed, Owner: store.Owner{byte(pass + 1)}, Keep: time.Millisecond}); err != nil {
				t.Error(err)
			}
			eventually(t, 20*time.Second, "a pass deletes the record", func() bool {
				_, err := st.Get(t.Context(), k)
				return errors.Is(err, store.ErrNotFound)
			})
		}
		_ = p.Signal(syscall.SIGTERM)
	}, "sweep", "--store", url, "--every", "100ms")
	if code != 0 {
		t.Errorf("exit code %d: %s", code, said)
	}
}

// semel proxy … 2>&1 | logger: the end of the logger is not the end of the proxy.
func TestProxy_ReaderOfLogGone_ServesAndDrains(t *testing.T) {
	t.Parallel()
	b := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.URL.Path == "/bad" {
			panic(http.ErrAbortHandler)
		}
		w.WriteHeader(http.StatusCreated)
	}))
	defer b.Close()
	addr := freeAddr(t)
	reader, writer, err := os.Pipe()
	if err != nil {
		t.Fatal(err)
	}
	path, err := binary()
	if err != nil {
		t.Fatal(err)
	}
	built.Store(true)
	cmd := exec.Command(path, "proxy", "--listen", addr, "--upstream", b.URL, "--scope", "single", "--store", "memory:")
	cmd.Stderr = writer
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	_ = writer.Close()
	defer func() { _ = cmd.Process.Kill() }() // it may be gone
	tr := wire(t)
	eventually(t, time.Minute, "the proxy serves", func() bool {
		r, err := post(t.Context(), tr, addr, "/pay", "k0", "")
		return err == nil && r.status == http.StatusCreated
	})
	_ = reader.Close()
	if r, err := post(t.Context(), tr, addr, "/bad", "k1", ""); err != nil || r.status != http.StatusBadGateway {
		t.Errorf("a request that writes a warning: %+v, %v", r, err)
	}
	if r, err := post(t.Context(), tr, addr, "/pay", "k2", ""); err != nil || r.status != http.StatusCreated {
		t.Errorf("the next request: %+v, %v", r, err)
	}
	_ = cmd.Process.Signal(syscall.SIGTERM)
	if err := cmd.Wait(); err != nil {
		t.Errorf("the end: %v", err)
	}
}

func TestProxy_Hangup_WaitsForRequestsInFlight(t *testing.T) {
	t.Parallel()
	g := newGate(t)
	p := start(t, "--listen", "127.0.0.1:0", "--admin-listen", "127.0.0.1:0", "--upstream", g.URL, "--scope", "single", "--store", "memory:")
	c := postLater(t, p.Addr, "k")
	<-g.in
	p.signal(syscall.SIGHUP)
	eventually(t, time.Minute, "readyz is 503", func() bool { status, _ := get(t, p.Admin+"/readyz"); return status == 503 })
	p.signal(syscall.SIGHUP) // a terminal that is closed can send several
	g.out <- http.StatusCreated
	if r := <-c; r.err != nil || r.status != http.StatusCreated {
		t.Errorf("the request in flight got %+v", r)
	}
	if code := p.exit(2 * time.Minute); code != 0 {
		t.Errorf("exit code %d\n%s", code, p.Log())
	}
}
