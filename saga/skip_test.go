package saga_test

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"testing"

	"github.com/semel-go/semel"
	"github.com/semel-go/semel/saga"
	"github.com/semel-go/semel/store"
	"github.com/semel-go/semel/store/memstore"
)

// An operator skips by a name that is none, because the record names no step, or with a
// result that the step cannot have. The saga is stuck at that until a decision names it again.
func TestIntervene_WrongSkip_IsTakenBackByName(t *testing.T) {
	t.Parallel()
	right := saga.Intervention{Done: "charge", Result: []byte(`"result of charge"`)}
	for name, c := range map[string]struct {
		wrong saga.Intervention
		says  string
		then  saga.Intervention
		want  []string
		end   store.State
	}{
		"name, then skip":          {saga.Intervention{Done: "chrge", Result: []byte("1")}, `skip of "chrge" names no step`, saga.Intervention{Done: "charge", Result: right.Result, NotHappened: []string{"chrge"}}, []string{"hold", "charge", "book"}, store.Completed},
		"name, then retry":         {saga.Intervention{Done: "chrge", Result: []byte("1")}, `skip of "chrge" names no step`, saga.Intervention{NotHappened: []string{"chrge"}}, []string{"hold", "charge", "charge", "book"}, store.Completed},
		"result, then skip":        {saga.Intervention{Done: "charge", Result: []byte("1")}, `skip of "charge" has a result that step "charge" cannot have: json: cannot unmarshal number into Go value of type string; skip it again, or say that it did not happen`, right, []string{"hold", "charge", "book"}, store.Completed},
		"result, then back":        {saga.Intervention{Done: "charge", Result: []byte("1")}, `skip of "charge" has a result`, saga.Intervention{Back: true, NotHappened: []string{"charge"}}, []string{"hold", "charge", "undo in doubt charge", "undo hold"}, store.Failed},
		"another step, then retry": {saga.Intervention{Done: "late", Result: []byte("1")}, `skip of "late" names a step that this run did not reach`, saga.Intervention{NotHappened: []string{"late"}}, []string{"hold", "charge", "charge", "book"}, store.Completed},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			bubble(t, func(t *testing.T, st *memstore.Store, w *world) {
				d := w.three()
				d.MaxAttempts = 1
				d.Steps = append(d.Steps, "late")
				w.after = func(step string) error {
					if step == "charge" && len(w.log) == 2 {
						return errBoom
					}
					return nil
				}
				s := newSaga(t, st, d)
				if _, err := s.Do(t.Context(), "ann", "1", book); !errors.Is(err, semel.ErrParked) {
					t.Fatalf("error %v, want ErrParked", err)
				}
				forgetError(t, st, "1")
				decide(t, st, c.wrong)
				if _, err := s.Do(t.Context(), "ann", "1", book); !errors.Is(err, semel.ErrParked) || !strings.Contains(err.Error(), c.says) {
					t.Fatalf("error %v, want one that says %s", err, c.says)
				}
				decide(t, st, c.then)
				_, err := s.Do(t.Context(), "ann", "1", book)
				if r := record(t, st, "1"); r.State != c.end {
					t.Errorf("the saga is %v: %v", r.State, err)
				}
				w.done(t, c.want...)
			})
		})
	}
}

// A wrong skip of a Parked step leaves it in doubt, so that the decision which takes its place
// has to say whether it happened.
func TestIntervene_WrongSkipOfParkedStep_StepIsInDoubtAgain(t *testing.T) {
	t.Parallel()
	bubble(t, func(t *testing.T, st *memstore.Store, w *world) {
		w.after = once("charge", errBoom)
		s := newSaga(t, st, w.parked())
		if _, err := s.Do(t.Context(), "ann", "1", book); !errors.Is(err, semel.ErrParked) {
			t.Fatalf("error %v, want ErrParked", err)
		}
		for n := range 2 { // one after the other
			decide(t, st, saga.Intervention{Done: "charge", Result: fmt.Append(nil, n)})
			if _, err := s.Do(t.Context(), "ann", "1", book); !errors.Is(err, semel.ErrParked) {
				t.Fatalf("error %v, want ErrParked", err)
			}
		}
		if err := saga.Intervene(t.Context(), st, record(t, st, "1"), saga.Intervention{Why: "ann"}); !errors.Is(err, semel.ErrInvalid) || !strings.Contains(err.Error(), `step "charge" is in doubt`) {
			t.Errorf("retry: error %v, want one that says that charge is in doubt", err)
		}
		decide(t, st, saga.Intervention{NotHappened: []string{"charge"}})
		if got, err := s.Do(t.Context(), "ann", "1", book); err != nil {
			t.Errorf("%q, %v", got, err)
		}
		w.done(t, "hold", "charge", "charge", "book")
	})
}

// A skip that a run has used stays, although a later deploy cannot read it or does not know the
// step: when that deploy is rolled back, a retry does not run the step again.
func TestIntervene_RetryAfterBadDeploy_UsedSkipStays(t *testing.T) {
	t.Parallel()
	for name, bad := range map[string]func(*saga.Definition[order, string], *world){
		"another type": func(d *saga.Definition[order, string], w *world) {
			d.Run = func(ctx context.Context, r *saga.Run, _ order) (string, error) {
				if _, err := w.step(ctx, r, "hold"); err != nil {
					return "", err
				}
				_, err := saga.Step(ctx, r, "charge", func(context.Context, saga.At) (int, error) { return 1, nil }, nil)
				return "", err
			}
		},
		"no such step": func(d *saga.Definition[order, string], _ *world) { d.Steps = []string{"hold", "book"} },
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			bubble(t, func(t *testing.T, st *memstore.Store, w *world) {
				d := w.three()
				d.MaxAttempts = 1
				w.before, w.after = once("book", semel.NoEffect(errBoom)), once("charge", errBoom)
				s := newSaga(t, st, d)
				parks := func(s *saga.Saga[order, string]) {
					t.Helper()
					if _, err := s.Do(t.Context(), "ann", "1", book); !errors.Is(err, semel.ErrParked) {
						t.Fatalf("error %v, want ErrParked", err)
					}
				}
				parks(s)
				decide(t, st, saga.Intervention{Done: "charge", Result: []byte(`"result of charge"`)})
				parks(s) // it has used the skip
				decide(t, st, saga.Intervention{})
				deployed := d
				bad(&deployed, w)
				parks(newSaga(t, st, deployed))
				decide(t, st, saga.Intervention{})
				if got, err := s.Do(t.Context(), "ann", "1", book); err != nil {
					t.Errorf("%q, %v", got, err)
				}
				w.done(t, "hold", "charge", "book")
			})
		})
	}
}

func decide(t *testing.T, st store.Store, i saga.Intervention) {
	t.Helper()
	i.Why = "ann"
	if err := saga.Intervene(t.Context(), st, record(t, st, "1"), i); err != nil {
		t.Fatal(err)
	}
}

// forgetError leaves the record as the end of a process does: it names no step.
func forgetError(t *testing.T, st *memstore.Store, id string) {
	t.Helper()
	r := record(t, st, id)
	p := store.Proposal{Key: r.Key, State: store.Unknown, Policy: r.Policy, Owner: store.Owner{1}, Attempt: r.Attempt, Keep: 1e18, Fingerprint: r.Fingerprint, Error: "the process died"}
	if f, err := st.Swap(context.Background(), r.Seen(), p); err != nil || !f.Won {
		t.Fatalf("%+v, %v", f, err)
	}
}
