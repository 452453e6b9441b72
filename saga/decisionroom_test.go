package saga_test

import (
	"context"
	"errors"
	"fmt"
	"testing"
	"time"

	"github.com/semel-go/semel"
	"github.com/semel-go/semel/saga"
	"github.com/semel-go/semel/store"
	"github.com/semel-go/semel/store/memstore"
)

// mails is a saga of n mails, the step "mail/0" first, and then of one charge.
func (w *world) mails(n int, undo func(n int) error, charge func() error) saga.Definition[order, string] {
	d := w.three()
	d.Steps = []string{"mail/*", "charge"}
	d.Run = func(ctx context.Context, r *saga.Run, _ order) (string, error) {
		for i := range n {
			compensation := func(context.Context, saga.At, string) error { return undo(i) }
			if undo == nil {
				compensation = nil
			}
			_, err := saga.Step(ctx, r, fmt.Sprint("mail/", i), func(context.Context, saga.At) (string, error) { return "", nil }, compensation)
			if err != nil {
				return "", err
			}
		}
		return saga.Step(ctx, r, "charge", func(context.Context, saga.At) (string, error) { return "", charge() }, nil)
	}
	return d
}

// A saga with many steps is stuck in the middle of its compensations. They are recorded, and
// leave as much room for decisions as before.
func TestIntervene_HalfOfManyStepsUndone_CanDecide(t *testing.T) {
	t.Parallel()
	for name, i := range map[string]saga.Intervention{"retry": {}, "skip": {Done: "mail/100:undo"}} {
		t.Run(name, func(t *testing.T) {
			bubble(t, func(t *testing.T, st *memstore.Store, w *world) {
				given := once("100", errRefused)
				s := newSaga(t, st, w.mails(350, func(n int) error { return given(fmt.Sprint(n)) }, func() error { return errRefused }))
				if _, err := s.Do(t.Context(), "ann", "1", book); !errors.Is(err, semel.ErrParked) {
					t.Fatalf("error %v, want the saga stuck", err)
				}
				decide(t, st, i)
				work(t, time.Minute, s)
				if r := record(t, st, "1"); r.State != store.Failed {
					t.Errorf("the saga is %v: %s", r.State, r.LastError)
				}
			})
		})
	}
}

// Steps without compensations need no room to be undone.
func TestIntervene_ManyStepsWithoutCompensations_CanRetry(t *testing.T) {
	t.Parallel()
	bubble(t, func(t *testing.T, st *memstore.Store, w *world) {
		given := once("charge", errBoom)
		d := w.mails(500, nil, func() error { return given("charge") })
		d.MaxAttempts = 1
		s := newSaga(t, st, d)
		if _, err := s.Do(t.Context(), "ann", "1", book); !errors.Is(err, semel.ErrParked) {
			t.Fatalf("error %v, want the saga stuck", err)
		}
		decide(t, st, saga.Intervention{})
		work(t, time.Minute, s)
		if r := record(t, st, "1"); r.State != store.Completed {
			t.Errorf("the saga is %v: %s", r.State, r.LastError)
		}
	})
}

// Decisions use only the room that is left for them, and the last one can turn the saga back. The
// compensations still have theirs.
func TestIntervene_ManyDecisions_RefusedUntilBack(t *testing.T) {
	t.Parallel()
	bubble(t, func(t *testing.T, st *memstore.Store, w *world) {
		undone := 0
		d := w.mails(449, func(int) error { undone++; return nil }, func() error { return errBoom })
		d.MaxAttempts = 1
		s := newSaga(t, st, d)
		if _, err := s.Do(t.Context(), "ann", "1", book); !errors.Is(err, semel.ErrParked) {
			t.Fatalf("error %v, want the saga stuck", err)
		}
		for n := range 97 {
			if err := saga.Intervene(t.Context(), st, record(t, st, "1"), saga.Intervention{Why: "ann: again"}); err != nil {
				t.Fatalf("decision %d: %v", n, err)
			}
			work(t, time.Minute, s)
		}
		err := saga.Intervene(t.Context(), st, record(t, st, "1"), saga.Intervention{Why: "ann: again"})
		if !errors.Is(err, semel.ErrInvalid) || !contains(err, "turn the saga back") {
			t.Fatalf("error %v, want ErrInvalid", err)
		}
		decide(t, st, saga.Intervention{Back: true})
		work(t, time.Minute, s)
		if r := record(t, st, "1"); r.State != store.Failed || undone != 449 {
			t.Errorf("the saga is %v: %s; %d steps are undone", r.State, r.LastError, undone)
		}
	})
}
