//go:build unix

package saga

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"math/rand/v2"
	"net/http/httptest"
	"strconv"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/semel-go/semel"
	"github.com/semel-go/semel/internal/proctest"
	"github.com/semel-go/semel/store"
	"github.com/semel-go/semel/test/internal/figure"
	"github.com/semel-go/semel/test/internal/stores"
)

// fleet keeps worker processes running in its slots.
type fleet struct {
	mu    sync.Mutex
	slots map[string]*proctest.Process
	runs  atomic.Int64
}

func (f *fleet) kill(path string) {
	f.mu.Lock()
	p := f.slots[path]
	f.mu.Unlock()
	if p != nil {
		p.Kill()
	}
}

// keep starts a process in a slot, and after its death the next one.
func (f *fleet) keep(ctx context.Context, t *testing.T, path string, s spec, restless func() time.Duration) {
	s.Ledger += path
	text, err := json.Marshal(&s)
	if err != nil {
		t.Error(err)
		return
	}
	for ctx.Err() == nil {
		p, err := proctest.Start(proctest.Self(t, workerEnv+"="+string(text)))
		if err != nil {
			t.Error(err)
			return
		}
		f.mu.Lock()
		f.slots[path] = p
		f.mu.Unlock()
		f.runs.Add(1)
		timer := time.NewTimer(restless())
		select {
		case <-p.Ended():
		case <-timer.C: // also between effects
		case <-ctx.Done():
		}
		timer.Stop()
		p.Kill()
	}
}

// storm runs sagas in processes that are killed, until each has ended.
func storm(t *testing.T, backend string, count int, freshKeys bool) (runs int64, calls int, wrong []string) {
	b, _ := stores.BackendNamed(backend)
	s := spec{Backend: backend, URL: b.Start(t).URL, FreshKeys: freshKeys}
	if err := prepare(t.Context(), &s); err != nil {
		t.Fatal(err)
	}
	f := &fleet{slots: map[string]*proctest.Process{}}
	l := newLedger(f.kill)
	server := httptest.NewServer(l)
	defer server.Close()
	s.Ledger = server.URL
	o, err := open(t.Context(), &s)
	if err != nil {
		t.Fatal(err)
	}
	defer func() {
		if err := o.end(); err != nil {
			t.Error(err)
		}
	}()
	var ids []string
	for i := range count {
		id := "order-" + strconv.Itoa(i)
		if i%5 == 0 {
			id += "-refused"
		}
		ids = append(ids, id)
		err := o.saga.Start(t.Context(), semel.Shared, id, id)
		for range 20 { // the lease is short, so that a busy machine loses it
			if err == nil {
				break
			}
			err = o.saga.Start(t.Context(), semel.Shared, id, id)
		}
		if err != nil {
			t.Fatal(err)
		}
	}
	ctx, cancel := context.WithCancel(t.Context())
	var all sync.WaitGroup
	for i := range 3 {
		all.Go(func() {
			f.keep(ctx, t, fmt.Sprint("/", i), s, func() time.Duration { return 50*time.Millisecond + rand.N(800*time.Millisecond) })
		})
	}
	for _, id := range ids {
		waitForEnd(t, o.st, id)
	}
	l.mu.Lock()
	l.calm = true
	calls = l.calls
	l.mu.Unlock()
	cancel()
	all.Wait()
	booked, err := bookings(&s)
	if err != nil {
		t.Fatal(err)
	}
	for _, id := range ids {
		wrong = append(wrong, l.judge(id, booked[id])...)
		out, err := o.saga.Do(t.Context(), semel.Shared, id, id)
		if f, failed := errors.AsType[*semel.Failure](err); refused(id) != failed || failed && f.Code != "refused" || !failed && (err != nil || out != "booked "+id) {
			wrong = append(wrong, fmt.Sprintf("%s: a duplicate gets %q, %v", id, out, err))
		}
	}
	return f.runs.Load(), calls, wrong
}

// waitForEnd waits until a saga has ended.
func waitForEnd(t *testing.T, st store.Store, id string) {
	t.Helper()
	k := store.Key{Operation: "order##saga", Value: id}
	tick := time.NewTicker(20 * time.Millisecond)
	defer tick.Stop()
	for start := time.Now(); ; <-tick.C {
		f, err := st.Get(t.Context(), k)
		if err == nil && f.Record.State.Terminal() {
			return
		}
		if time.Since(start) > 10*time.Minute || f.Record.State == store.Unknown {
			t.Fatalf("saga %s is %v (%s), error %v", id, f.Record.State, f.Record.LastError, err)
		}
	}
}

// Processes are killed at every effect, between, and in transactions: each saga ends
// done or undone in reverse, nothing twice.
func TestCampaign_SagaWorkersKilled_DoneOrUndoneOnce(t *testing.T) {
	if testing.Short() {
		t.Skip("processes are killed in the normal form")
	}
	count := 15
	if figure.Long() {
		count = 300
	}
	for _, backend := range []string{"sqlite", "postgres"} {
		t.Run(backend, func(t *testing.T) {
			runs, calls, wrong := storm(t, backend, count, false)
			for i, text := range wrong {
				if i < 20 {
					t.Error(text)
				}
			}
			if runs < int64(count) {
				t.Errorf("%d process runs for %d sagas: too few died", runs, count)
			}
			figure.Report(t, figure.Figure{
				Claim: "a saga whose workers are killed ends done, or undone in reverse, and nothing happens twice", Where: backend,
				Trials: int64(count), Failures: int64(len(wrong)), Detail: fmt.Sprintf("%d process runs, %d effects", runs, calls),
			})
		})
	}
}

// The control: with a key for each process, effects happen twice.
func TestCampaign_SagaKeysOfProcesses_EffectsTwice(t *testing.T) {
	if testing.Short() {
		t.Skip("processes are killed in the normal form")
	}
	_, calls, wrong := storm(t, "sqlite", 10, true)
	if len(wrong) == 0 {
		t.Errorf("the ledger found nothing wrong with %d calls", calls)
	}
}
