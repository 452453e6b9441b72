package moved_test

import (
	"context"
	"errors"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/semel-go/semel"
	"github.com/semel-go/semel/saga"
	"github.com/semel-go/semel/store"
	"github.com/semel-go/semel/store/memstore"
	"github.com/semel-go/semel/store/moved"
)

// watched counts the reads of a store, and looks at what it is to receive.
type watched struct {
	*memstore.Store
	gets    atomic.Int64
	receive func(store.Record) error // nil: each record is taken
}

func (w *watched) Unwrap() store.Store { return w.Store }

func (w *watched) Get(ctx context.Context, k store.Key) (store.Found, error) {
	w.gets.Add(1)
	return w.Store.Get(ctx, k)
}

func (w *watched) Receive(ctx context.Context, r store.Record, steps []store.Step) (store.Found, error) {
	if w.receive != nil {
		if err := w.receive(r); err != nil {
			return store.Found{}, err
		}
	}
	return w.Store.Receive(ctx, r, steps)
}

const tripSaga = "trip##saga" // the operation of its records

var tripKey = store.Key{Operation: tripSaga, Tenant: "ann", Value: "1"}

// trip is a saga that only sleeps.
func trip(t *testing.T, st store.Store, nap time.Duration) *saga.Saga[string, string] {
	t.Helper()
	g, err := semel.New(st, nil)
	if err != nil {
		t.Fatal(err)
	}
	s, err := saga.New(g, saga.Definition[string, string]{
		Name: "trip", Steps: []string{"nap"},
		Run: func(ctx context.Context, r *saga.Run, in string) (string, error) {
			return in, saga.Sleep(ctx, r, "nap", nap)
		},
	})
	if err != nil {
		t.Fatal(err)
	}
	return s
}

// A read of a saga does not set its timer again, or its worker would never change that.
func TestGet_SagaOfOldStore_WorkerLooksAFewTimes(t *testing.T) {
	refused := func(store.Record) error { return errDown }
	for name, c := range map[string]struct {
		nap     time.Duration
		copied  bool
		receive func(store.Record) error
		looks   int64 // at most; a request without an answer is sent four times
		timers  int   // at the end
	}{
		"sleeps, and was copied":        {nap: time.Hour, copied: true, looks: 10, timers: 1},
		"sleeps, and is carried":        {nap: time.Hour, looks: 10, timers: 1},
		"ends":                          {nap: time.Millisecond, copied: true, looks: 20},
		"is not taken by the new store": {nap: time.Hour, receive: refused, looks: 2500, timers: 1},
	} {
		synctest.Test(t, func(t *testing.T) {
			to, from := &watched{Store: memstore.New(nil)}, &watched{Store: memstore.New(nil)}
			if err := trip(t, from, c.nap).Start(t.Context(), "ann", "1", "x"); err != nil {
				t.Fatal(err)
			}
			time.Sleep(time.Second) // the new store's clock is past the old one's
			st := join(t, to, from)
			if c.copied {
				if _, err := moved.Copy(t.Context(), to, from, nil); err != nil {
					t.Fatal(err)
				}
			}
			to.receive = c.receive
			if _, err := st.Get(t.Context(), tripKey); (err != nil) != (c.receive != nil) {
				t.Fatal(err)
			}
			from.gets.Store(0)
			ctx, cancel := context.WithTimeout(t.Context(), 10*time.Minute)
			defer cancel()
			if err := trip(t, st, c.nap).Work(ctx, nil); err != nil {
				t.Errorf("a saga that %s: %v", name, err)
			}
			if n := from.gets.Load(); n == 0 || n > c.looks {
				t.Errorf("a saga that %s: %d reads of the old store in 10 minutes, want 1 to %d", name, n, c.looks)
			}
			all, _, err := to.DueTimers(t.Context(), tripSaga, 2*time.Hour, 10)
			if err != nil || len(all) != c.timers {
				t.Errorf("a saga that %s has %d timers, error %v; want %d", name, len(all), err, c.timers)
			}
		})
	}
}

// A process may die between two changes of the new store, so the timer comes first.
func TestGet_OpenSagaOfOldStore_TimerIsThereBeforeRecord(t *testing.T) {
	to, from := &watched{Store: memstore.New(nil)}, memstore.New(nil)
	if err := trip(t, from, time.Hour).Start(t.Context(), "ann", "1", "x"); err != nil {
		t.Fatal(err)
	}
	timers := func() int {
		t.Helper()
		all, _, err := to.DueTimers(t.Context(), tripSaga, time.Hour, 10)
		if err != nil {
			t.Fatal(err)
		}
		return len(all)
	}
	died := true
	to.receive = func(store.Record) error {
		if n := timers(); n != 1 {
			t.Errorf("the record comes when the saga has %d timers, want 1", n)
		}
		if died {
			return errDown
		}
		return nil
	}
	st := join(t, to, from)
	if _, err := st.Get(t.Context(), tripKey); !errors.Is(err, errDown) {
		t.Fatalf("error %v, want the fault", err)
	}
	died = false
	if _, err := st.Get(t.Context(), tripKey); err != nil {
		t.Fatal(err)
	}
	if _, err := to.Store.Get(t.Context(), tripKey); err != nil || timers() != 1 {
		t.Errorf("the new store: %d timers, error %v; want the record and one timer", timers(), err)
	}
}
