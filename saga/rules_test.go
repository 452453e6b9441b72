package saga_test

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/semel-go/semel"
	"github.com/semel-go/semel/saga"
	"github.com/semel-go/semel/store"
	"github.com/semel-go/semel/store/memstore"
)

// The tests of this file are named after the eight rules of docs/sagas.md.

// Rule 1: a recorded step that the definition has no more parks the saga, before
// anything runs.
func TestRule1_RecordedStepIsNotListed_ParksAndNamesIt(t *testing.T) {
	t.Parallel()
	bubble(t, func(t *testing.T, st *memstore.Store, w *world) {
		w.before = once("book", errBoom)
		if _, err := newSaga(t, st, w.three()).Do(t.Context(), "ann", "1", book); !errors.Is(err, errBoom) {
			t.Fatal(err)
		}
		renamed := w.three()
		renamed.Steps = []string{"hold", "pay", "book"}
		renamed.Run = func(ctx context.Context, r *saga.Run, in order) (string, error) {
			_, err := w.step(ctx, r, "pay")
			return "", err
		}
		_, err := newSaga(t, st, renamed).Do(t.Context(), "ann", "1", book)
		if !errors.Is(err, semel.ErrParked) || !strings.Contains(err.Error(), `step "charge"`) {
			t.Errorf("error %v, want ErrParked that names charge", err)
		}
		w.done(t, "hold", "charge")
		if r := record(t, st, "1"); r.State != store.Unknown || !strings.Contains(r.LastError, `step "charge"`) {
			t.Errorf("the record is %v: %s", r.State, r.LastError)
		}
	})
}

// Rule 1: a recorded step that a run does not reach is not skipped silently.
func TestRule1_RecordedStepIsNotReached_ParksInsteadOfEnding(t *testing.T) {
	t.Parallel()
	for _, end := range []error{nil, errRefused} {
		bubble(t, func(t *testing.T, st *memstore.Store, w *world) {
			w.before = once("book", errBoom)
			_, _ = newSaga(t, st, w.three()).Do(t.Context(), "ann", "1", book)
			skips := w.three()
			skips.Run = func(ctx context.Context, r *saga.Run, in order) (string, error) {
				_, _ = w.step(ctx, r, "hold")
				return "", end
			}
			_, err := newSaga(t, st, skips).Do(t.Context(), "ann", "1", book)
			if !errors.Is(err, semel.ErrParked) || !strings.Contains(err.Error(), `step "charge"`) {
				t.Errorf("error %v, want ErrParked that names charge", err)
			}
			w.done(t, "hold", "charge")
		})
	}
}

// Rule 1: names and not positions.
func TestRule1_StepsInAnotherOrder_AreFoundByName(t *testing.T) {
	t.Parallel()
	bubble(t, func(t *testing.T, st *memstore.Store, w *world) {
		w.before = once("book", errBoom)
		_, _ = newSaga(t, st, w.three()).Do(t.Context(), "ann", "1", book)
		d := w.three()
		d.Run = func(ctx context.Context, r *saga.Run, in order) (string, error) {
			for _, name := range []string{"charge", "book", "hold"} {
				if v, err := w.step(ctx, r, name); err != nil || v != "result of "+name {
					return "", fmt.Errorf("step %s: %q, %w", name, v, err)
				}
			}
			return "booked", nil
		}
		if v, err := newSaga(t, st, d).Do(t.Context(), "ann", "1", book); err != nil || v != "booked" {
			t.Errorf("%q, %v", v, err)
		}
		w.done(t, "hold", "charge", "book")
	})
}

// Rule 2: compensations run in the reverse order of start, and a refused step has none.
func TestRule2_StepRefused_UndoneInReverse(t *testing.T) {
	t.Parallel()
	bubble(t, func(t *testing.T, st *memstore.Store, w *world) {
		w.before = func(name string) error {
			if name == "book" {
				return errRefused
			}
			return nil
		}
		s := newSaga(t, st, w.three())
		for range 2 { // the second is a duplicate
			if _, err := s.Do(t.Context(), "ann", "1", book); !errors.Is(err, errRefused) {
				t.Errorf("error %v, want the failure of the step", err)
			}
		}
		w.done(t, "hold", "charge", "undo charge", "undo hold")
		if n := timersOf(t, st); n != 0 {
			t.Errorf("%d timers are left", n)
		}
	})
}

// Rule 2: a compensation is told whether its step is done or in doubt.
func TestRule2_StepInDoubtAtDeadline_CompensationIsTold(t *testing.T) {
	t.Parallel()
	bubble(t, func(t *testing.T, st *memstore.Store, w *world) {
		w.after = func(name string) error {
			if name == "charge" {
				return errBoom
			}
			return nil
		}
		d := w.three()
		d.Deadline = time.Minute
		s := newSaga(t, st, d)
		if err := s.Start(t.Context(), "ann", "1", book); err != nil {
			t.Fatal(err)
		}
		work(t, 3*time.Minute, s)
		_, err := s.Do(t.Context(), "ann", "1", book)
		if f, ok := errors.AsType[*semel.Failure](err); !ok || f.Code != saga.CodeDeadline {
			t.Errorf("error %v, want the failure of the deadline", err)
		}
		w.mu.Lock()
		defer w.mu.Unlock()
		if n := len(w.log); n < 4 || w.log[n-2] != "undo in doubt charge" || w.log[n-1] != "undo hold" {
			t.Errorf("the effects are %q, want undo in doubt charge, undo hold at the end", w.log)
		}
	})
}

// Rules 2 and 5: a compensation that uses the Run starts no step.
func TestRule5_CompensationUsesStep_StartsNone(t *testing.T) {
	t.Parallel()
	g, err := semel.New(memstore.New(nil), nil)
	if err != nil {
		t.Fatal(err)
	}
	ended := make(chan error, 1)
	s, err := saga.New(g, saga.Definition[string, string]{
		Name: "order", Steps: []string{"hold", "never"},
		Run: func(ctx context.Context, r *saga.Run, _ string) (string, error) {
			_, err := saga.Step(ctx, r, "hold", func(context.Context, saga.At) (string, error) { return "", nil }, func(ctx context.Context, _ saga.At, _ string) error {
				_, err := saga.Step(ctx, r, "never", func(context.Context, saga.At) (string, error) {
					t.Error("a step has started in a compensation")
					return "", nil
				}, nil)
				if err == nil {
					t.Error("a step in a compensation: no error")
				}
				return nil
			})
			return "", errors.Join(err, errRefused)
		},
	})
	if err != nil {
		t.Fatal(err)
	}
	go func() {
		_, err := s.Do(t.Context(), "ann", "1", "in")
		ended <- err
	}()
	select {
	case err := <-ended:
		if !errors.Is(err, errRefused) {
			t.Errorf("error %v, want the failure of the saga", err)
		}
	case <-time.After(20 * time.Second):
		t.Fatal("the compensation waits for the Run for ever")
	}
}
