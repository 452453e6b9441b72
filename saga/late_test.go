package saga_test

import (
	"context"
	"errors"
	"sync"
	"testing"
	"time"

	"github.com/semel-go/semel/saga"
	"github.com/semel-go/semel/store"
	"github.com/semel-go/semel/store/memstore"
)

// lateTimers is a process whose first request to make a timer, and whose first request to
// change that timer, get no answer and arrive late. Each is sent again.
type lateTimers struct {
	*process
	mu   sync.Mutex
	late []func()
}

func (l *lateTimers) SetTimer(ctx context.Context, k store.Key, seen, next store.Owner, wait time.Duration) (bool, error) {
	l.mu.Lock()
	first := len(l.late) == 0 && seen == (store.Owner{}) || len(l.late) == 1 && seen != (store.Owner{})
	if first {
		l.late = append(l.late, func() { _, _ = l.process.SetTimer(context.Background(), k, seen, next, wait) })
	}
	l.mu.Unlock()
	if first {
		return false, errBoom
	}
	return l.process.SetTimer(ctx, k, seen, next, wait)
}

// Requests for a timer that arrive late make it early, and never late: a saga whose
// process dies then goes on soon, although an earlier run waited without a limit.
func TestTimer_RequestsArriveLate_SagaGoesOnSoon(t *testing.T) {
	t.Parallel()
	bubble(t, func(t *testing.T, st *memstore.Store, w *world) {
		d := w.waiting(func(ctx context.Context, r *saga.Run) error {
			_, err := saga.Await[string](ctx, r, "wait", 0)
			return err
		})
		caller := &lateTimers{process: newProcess(st)}
		ctx, leave := context.WithTimeout(t.Context(), time.Minute)
		defer leave()
		if _, err := newSaga(t, caller, d).Do(ctx, "ann", "1", book); err == nil {
			t.Fatal("the saga did not wait")
		}
		if len(caller.late) != 2 {
			t.Fatalf("%d requests are under way, want 2", len(caller.late))
		}
		if err := newSaga(t, st, d).Send(t.Context(), "ann", "1", "wait", "come"); err != nil {
			t.Fatal(err)
		}
		dying := newProcess(st)
		dies := once("book", errBoom)
		w.before = func(name string) error {
			err := dies(name)
			if err != nil {
				for _, arrive := range caller.late {
					arrive()
				}
				dying.kill()
			}
			return err
		}
		work(t, 10*time.Second, newSaga(t, dying, d))
		work(t, 2*time.Minute, newSaga(t, st, d))
		if r := record(t, st, "1"); r.State != store.Completed {
			t.Errorf("the record is %v: %s", r.State, r.LastError)
		}
	})
}

// unsettled is a process whose settlements do not reach the store.
type unsettled struct{ *process }

func (unsettled) Settle(context.Context, store.Lease, store.Settlement) error { return errBoom }

// A run that is stuck, and whose settlement was lost, is looked at soon after its lease
// and not after ten minutes, so that operators see the saga.
func TestTimer_SettlementOfStuckRunLost_SagaIsStuckSoon(t *testing.T) {
	t.Parallel()
	bubble(t, func(t *testing.T, st *memstore.Store, w *world) {
		w.after = once("charge", errBoom)
		d := w.three()
		d.Run = func(ctx context.Context, r *saga.Run, _ order) (string, error) {
			_, err := w.step(ctx, r, "charge", saga.Parked())
			return "", err
		}
		if err := newSaga(t, st, d).Start(t.Context(), "ann", "1", book); err != nil {
			t.Fatal(err)
		}
		work(t, 2*time.Minute, newSaga(t, unsettled{newProcess(st)}, d))
		if r := record(t, st, "1"); r.State != store.Processing {
			t.Fatalf("the record is %v", r.State)
		}
		work(t, 2*time.Minute, newSaga(t, st, d))
		if r := record(t, st, "1"); r.State != store.Unknown {
			t.Errorf("two minutes later the record is %v: %s", r.State, r.LastError)
		}
	})
}

// A timer whose record is gone, such as that of an erased saga, does no harm: the next worker
// finds no record, runs nothing and drops the timer.
func TestWork_TimerWithoutRecord_IsDroppedAndNothingRuns(t *testing.T) {
	t.Parallel()
	bubble(t, func(t *testing.T, st *memstore.Store, w *world) {
		s, k := newSaga(t, st, w.three()), saga.Key("order", "ann", "erased")
		if _, err := st.SetTimer(t.Context(), k, store.Owner{}, store.Owner{1}, time.Second); err != nil {
			t.Fatal(err)
		}
		work(t, time.Minute, s)
		w.done(t)
		due, _, err := st.DueTimers(t.Context(), k.Operation, 24*time.Hour, 10)
		if err != nil || len(due) != 0 {
			t.Errorf("the timers are %v, error %v; want none", due, err)
		}
		if _, err := st.Get(t.Context(), k); !errors.Is(err, store.ErrNotFound) {
			t.Errorf("the worker has made a record: %v", err)
		}
	})
}
