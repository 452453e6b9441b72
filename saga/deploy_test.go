package saga_test

import (
	"context"
	"errors"
	"testing"

	"github.com/semel-go/semel"
	"github.com/semel-go/semel/saga"
	"github.com/semel-go/semel/store/memstore"
)

// Rule 3: a version that has no Parked on a step does not repeat it after doubt either.
func TestRule3_ParkedRemovedByDeploy_StepInDoubtIsHeld(t *testing.T) {
	t.Parallel()
	bubble(t, func(t *testing.T, st *memstore.Store, w *world) {
		p := newProcess(st)
		dies := once("charge", errBoom)
		w.after = func(name string) error {
			err := dies(name)
			if err != nil {
				p.kill()
			}
			return err
		}
		old, next := w.three(), w.three()
		old.Run = func(ctx context.Context, r *saga.Run, _ order) (string, error) {
			return w.step(ctx, r, "charge", saga.Parked())
		}
		next.Run = func(ctx context.Context, r *saga.Run, _ order) (string, error) { return w.step(ctx, r, "charge") }
		_, _ = newSaga(t, p, old).Do(t.Context(), "ann", "1", book)
		s := newSaga(t, st, next)
		if _, err := s.Do(t.Context(), "ann", "1", book); !errors.Is(err, semel.ErrParked) {
			t.Errorf("error %v, want ErrParked", err)
		}
		w.done(t, "charge")
		decide(t, st, saga.Intervention{NotHappened: []string{"charge"}})
		if _, err := s.Do(t.Context(), "ann", "1", book); err != nil {
			t.Errorf("after the decision: %v", err)
		}
		w.done(t, "charge", "charge")
	})
}
