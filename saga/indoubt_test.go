package saga_test

import (
	"context"
	"errors"
	"testing"
	"time"

	"github.com/semel-go/semel"
	"github.com/semel-go/semel/saga"
	"github.com/semel-go/semel/store"
	"github.com/semel-go/semel/store/memstore"
)

// noAnswer is an Atomic whose COMMIT gets no answer.
type noAnswer struct{}

func (noAnswer) Run(ctx context.Context, _ semel.Call, fn semel.Handler) (semel.Result, error) {
	x, _ := semel.FromContext(ctx)
	_, err := fn(ctx, x)
	return semel.Result{}, &semel.Error{Reason: semel.ErrUnavailable, Cause: errors.Join(semel.ErrInDoubt, err)}
}

// A transaction that may commit later must not be undone before.
func TestStepIn_CommitInDoubt_NothingIsUndoneInItsRun(t *testing.T) {
	t.Parallel()
	for name, result := range map[string]error{"the deadline passes": nil, "another step is refused": errRefused} {
		t.Run(name, func(t *testing.T) {
			bubble(t, func(t *testing.T, st *memstore.Store, w *world) {
				d := w.three()
				d.Deadline = time.Minute
				d.Run = func(ctx context.Context, r *saga.Run, _ order) (string, error) {
					if _, err := w.step(ctx, r, "hold"); err != nil {
						return "", err
					}
					_, err := saga.StepIn(ctx, r, noAnswer{}, "charge", func(context.Context, saga.At) (string, error) { return "", nil }, func(_ context.Context, at saga.At, _ string) error {
						return w.act("undo charge", at.Key())
					})
					if result != nil {
						return "", result
					}
					sleep(2 * time.Minute)
					return "", err
				}
				s := newSaga(t, st, d)
				_, err := s.Do(t.Context(), "ann", "1", book)
				if _, failed := errors.AsType[*semel.Failure](err); err == nil || failed {
					t.Errorf("the run of the lost answer: %v, want an error that is no Failure", err)
				}
				w.done(t, "hold")
				sleep(2 * time.Minute)
				_, err = s.Do(t.Context(), "ann", "1", book)
				if f, ok := errors.AsType[*semel.Failure](err); !ok || f.Code != saga.CodeDeadline {
					t.Errorf("the next run: %v, want the failure of the deadline", err)
				}
				w.done(t, "hold", "undo charge", "undo hold")
			})
		})
	}
}

// The failure in NoEffect is that of another call.
func TestStep_NoEffectOfFailure_GoesOnLater(t *testing.T) {
	t.Parallel()
	for name, options := range map[string][]saga.StepOption{"": nil, "Parked": {saga.Parked()}} {
		for kind, refusal := range map[string]error{"Failure": errRefused, "ErrMismatch": &semel.Error{Reason: semel.ErrMismatch}} {
			t.Run(name+kind, func(t *testing.T) {
				bubble(t, func(t *testing.T, st *memstore.Store, w *world) {
					w.before = once("charge", semel.NoEffect(refusal))
					d := w.three()
					d.Run = func(ctx context.Context, r *saga.Run, _ order) (string, error) {
						if _, err := w.step(ctx, r, "hold"); err != nil {
							return "", err
						}
						return w.step(ctx, r, "charge", options...)
					}
					s := newSaga(t, st, d)
					_, err := s.Do(t.Context(), "ann", "1", book)
					if _, failed := errors.AsType[*semel.Failure](err); err == nil || failed || record(t, st, "1").State != store.Released {
						t.Errorf("the saga: %v; its record is %v, want released", err, record(t, st, "1").State)
					}
					if _, err := s.Do(t.Context(), "ann", "1", book); err != nil {
						t.Errorf("the next call: %v", err)
					}
					w.done(t, "hold", "charge")
				})
			})
		}
	}
}

// An error after which a saga goes on does not say that it has ended.
func TestDo_StepReturnsOutcomeOfAnotherCall_SagaIsNotDone(t *testing.T) {
	t.Parallel()
	for _, reason := range []error{semel.ErrNotKept, semel.ErrOutcomeNotStored} {
		bubble(t, func(t *testing.T, st *memstore.Store, w *world) {
			w.before = once("charge", &semel.Error{Reason: reason})
			s := newSaga(t, st, w.three())
			_, err := s.Do(t.Context(), "ann", "1", book)
			if r := record(t, st, "1"); err == nil || errors.Is(err, reason) || r.State != store.Released {
				t.Errorf("%v: the saga: %v; its record is %v, want released", reason, err, r.State)
			}
			if _, err := s.Do(t.Context(), "ann", "1", book); err != nil {
				t.Errorf("%v: the next call: %v", reason, err)
			}
		})
	}
}
