package semel_test

import (
	"context"
	"errors"
	"fmt"
	"testing"

	"github.com/semel-go/semel"
	"github.com/semel-go/semel/driver"
	"github.com/semel-go/semel/store"
	"github.com/semel-go/semel/store/memstore"
)

// A caller takes ErrNotKept and ErrOutcomeNotStored for the end of its own call. If the
// handler returns one of its step, or of another call, the call has not ended.
func TestRun_HandlerReturnsOutcomeOfAnotherRun_CallIsNotDone(t *testing.T) {
	down := errors.New("the bank is down")
	for _, reason := range []error{semel.ErrNotKept, semel.ErrOutcomeNotStored} {
		for name, result := range map[string]error{
			"plain":         &semel.Error{Reason: reason, Cause: down},
			"wrapped":       fmt.Errorf("charge: %w", &semel.Error{Reason: reason, Cause: down}),
			"joined":        errors.Join(&semel.Error{Reason: reason}, down),
			"no effect":     semel.NoEffect(&semel.Error{Reason: reason, Cause: down}),
			"in the reason": errors.Join(reason, down),
		} {
			for run, options := range map[string]*semel.Options{
				"retry":          {},
				"park":           {OnDoubt: semel.Park},
				"last attempt":   {MaxAttempts: 1},
				"without record": {UnprotectedOnOutage: true},
			} {
				t.Run(fmt.Sprint(reason, "/", name, "/", run), func(t *testing.T) {
					st := &hooks{Store: memstore.New(nil)}
					if options.UnprotectedOnOutage {
						st.claim = func(context.Context, store.Proposal) (store.Found, error) { return store.Found{}, errBoom }
					}
					g := guard(t, st, options)
					_, err := semel.Do(t.Context(), g, ann("k"), func(context.Context, *semel.Execution) (string, error) { return "", result })
					wantErr(t, err, down)
					wantNoOutcome(t, err)
				})
			}
			_, err := driver.RunIn(t.Context(), guard(t, clockless{}, nil), newTx(), ann("k"), func(context.Context, *semel.Execution) (store.Outcome, error) {
				return store.Outcome{}, result
			})
			wantErr(t, err, down)
			wantNoOutcome(t, err)
		}
	}
}

// A step that fails because of a step in it has not ended either.
func TestStep_InnerResultNotKept_OuterIsNotDone(t *testing.T) {
	g := guard(t, memstore.New(nil), &semel.Options{MaxOutcome: 100})
	for range 2 { // the second attempt finds that the result is gone
		_ = semel.Once(t.Context(), g, ann("k"), func(ctx context.Context, x *semel.Execution) error {
			err := semel.Once(ctx, g, x.Step("ship"), func(ctx context.Context, x *semel.Execution) error {
				_, err := semel.Do(ctx, g, x.Step("label"), func(context.Context, *semel.Execution) (string, error) { return fmt.Sprintf("%200d", 1), nil })
				return errors.Join(err, errBoom)
			})
			wantErr(t, err, errBoom)
			wantNoOutcome(t, err)
			return err
		})
	}
}

// A Failure ends the call, whatever is joined to it.
func TestRun_FailureJoinedToOutcomeOfAnotherRun_IsKept(t *testing.T) {
	g := guard(t, memstore.New(nil), nil)
	for range 2 {
		err := semel.Once(t.Context(), g, ann("k"), func(context.Context, *semel.Execution) error {
			return errors.Join(&semel.Error{Reason: semel.ErrNotKept}, &semel.Failure{Code: "refused"})
		})
		wantErr(t, err, &semel.Failure{Code: "refused"})
	}
	wantState(t, g, "k", store.Failed)
}

func wantNoOutcome(t *testing.T, err error) {
	t.Helper()
	e, ok := errors.AsType[*semel.Error](err)
	for _, reason := range []error{semel.ErrNotKept, semel.ErrOutcomeNotStored} {
		if errors.Is(err, reason) || ok && e.Reason == reason {
			t.Errorf("the error says of the call that it is done: %v", err)
		}
	}
}
