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
	"github.com/semel-go/semel/store/dynamostore/dynamotest"
	"github.com/semel-go/semel/test/internal/figure"
	"github.com/semel-go/semel/test/internal/stores"
)

// fleet keeps worker processes running in its slots.
type fleet struct {
	mu    sync.Mutex
	slots map[string]*slot
	runs  atomic.Int64
}

// slot is a place for one process at a time.
type slot struct {
	process *proctest.Process
	called  chan struct{} // closed when the process has called the ledger
}

func (f *fleet) kill(path string) {
	f.mu.Lock()
	s := f.slots[path]
	f.mu.Unlock()
	if s != nil {
		s.process.Kill()
	}
}

// called notes that a process has called the ledger.
func (f *fleet) called(path string) {
	f.mu.Lock()
	defer f.mu.Unlock()
	s := f.slots[path]
	if s == nil {
		return
	}
	select {
	case <-s.called:
	default:
		close(s.called)
	}
}

// keep starts a process in a slot, and after its death the next one. It kills a process
// some time after its first call, so that a slow machine makes progress, too.
func (f *fleet) keep(ctx context.Context, t *testing.T, path string, s spec) {
	s.Ledger += path
	text, err := json.Marshal(&s)
	if err != nil {
		t.Error(err)
		return
	}
	for ctx.Err() == nil {
		f.mu.Lock() // the process calls only when it has its slot
		p, err := proctest.Start(proctest.Self(t, workerEnv+"="+string(text)))
		if err != nil {
			f.mu.Unlock()
			t.Error(err)
			return
		}
		in := &slot{process: p, called: make(chan struct{})}
		f.slots[path] = in
		f.mu.Unlock()
		f.runs.Add(1)
		select {
		case <-p.Ended():
		case <-in.called:
			timer := time.NewTimer(rand.N(800 * time.Millisecond))
			select {
			case <-p.Ended():
			case <-timer.C: // also between effects
			case <-ctx.Done():
			}
			timer.Stop()
		case <-ctx.Done():
		}
		p.Kill()
	}
}

// storm runs sagas in processes that are killed, until each has ended.
func storm(t *testing.T, backend string, count int, freshKeys bool) (runs int64, calls int, wrong []string) {
	s := spec{Backend: backend, FreshKeys: freshKeys}
	if b, ok := stores.BackendNamed(backend); ok {
		s.URL = b.Start(t).URL
	} else {
		s.URL = dynamotest.Start(t).URL()
	}
	if err := prepare(t.Context(), &s); err != nil {
		t.Fatal(err)
	}
	f := &fleet{slots: map[string]*slot{}}
	l := newLedger(f)
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
			f.keep(ctx, t, fmt.Sprint("/", i), s)
		})
	}
	for _, id := range ids {
		waitForEnd(t, o.st, l, id)
	}
	l.mu.Lock()
	l.calm = true
	calls = l.calls
	l.mu.Unlock()
	cancel()
	all.Wait()
	booked, err := bookings(t.Context(), &s)
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

// waitForEnd waits until a saga has ended. It gives up if no process has called the ledger
// for a long time; how many sagas there are, and how slow the machine is, do not matter.
func waitForEnd(t *testing.T, st store.Store, l *ledger, id string) {
	t.Helper()
	k := store.Key{Operation: "order##saga", Value: id}
	tick := time.NewTicker(20 * time.Millisecond)
	defer tick.Stop()
	for ; ; <-tick.C {
		f, err := st.Get(t.Context(), k)
		if err == nil && f.Record.State.Terminal() {
			return
		}
		if l.idle() > 10*time.Minute || f.Record.State == store.Unknown {
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
	count, want := 15, int64(15)
	if figure.Long() {
		count, want = 350, 1000
	}
	for _, backend := range []string{"sqlite", "postgres", "dynamodb"} {
		t.Run(backend, func(t *testing.T) {
			var runs, sagas int64
			var calls int
			var wrong []string
			for runs < want && len(wrong) == 0 {
				moreRuns, moreCalls, texts := storm(t, backend, count, false)
				runs, sagas, calls, wrong = runs+moreRuns, sagas+int64(count), calls+moreCalls, texts
				if moreRuns < int64(count) {
					t.Fatalf("%d process runs for %d sagas: too few died", moreRuns, count)
				}
			}
			for i, text := range wrong {
				if i < 20 {
					t.Error(text)
				}
			}
			figure.Report(t, figure.Figure{
				Claim: "a saga whose workers are killed ends done, or undone in reverse, and nothing happens twice", Where: backend,
				Trials: sagas, Failures: int64(len(wrong)), Detail: fmt.Sprintf("%d process runs, %d effects", runs, calls),
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
