package saga_test

import (
	"context"
	"testing"
	"time"

	"github.com/semel-go/semel/saga"
	"github.com/semel-go/semel/store"
	"github.com/semel-go/semel/store/memstore"
)

// A worker that stops lets the step that runs end. If the saga ends with it, no timer is left.
func TestWork_StopsDuringLastStep_LeavesNoTimer(t *testing.T) {
	t.Parallel()
	bubble(t, func(t *testing.T, st *memstore.Store, w *world) {
		d := w.three()
		d.Run = func(ctx context.Context, r *saga.Run, _ order) (string, error) {
			return saga.Step(ctx, r, "charge", func(context.Context, saga.At) (string, error) {
				<-time.After(2 * time.Minute)
				return "", nil
			}, nil)
		}
		s := newSaga(t, st, d)
		if err := s.Start(t.Context(), "ann", "1", book); err != nil {
			t.Fatal(err)
		}
		work(t, 100*time.Second, s) // the lease is shorter, so the worker finds the timer meanwhile
		r := record(t, st, "1")
		due, _, err := st.DueTimers(t.Context(), r.Key.Operation, 24*time.Hour, 10)
		if r.State != store.Completed || err != nil || len(due) != 0 {
			t.Errorf("the record is %v: %s; the timers are %v, %v; want none", r.State, r.LastError, due, err)
		}
	})
}
