package semel_test

import (
	"context"
	"errors"
	"strings"
	"testing"
	"time"

	"github.com/semel-go/semel"
	"github.com/semel-go/semel/saga"
	"github.com/semel-go/semel/store"
	"github.com/semel-go/semel/store/memstore"
)

func TestReopen_FailedCall_RunsAgain(t *testing.T) {
	g, err := semel.New(memstore.New(nil), &semel.Options{MaxAttempts: 1})
	if err != nil {
		t.Fatal(err)
	}
	call := semel.Call{Operation: "op", Tenant: semel.Shared, Key: "k", Payload: semel.NoPayload()}
	runs, fail := 0, true
	run := func() error {
		return semel.Once(t.Context(), g, call, func(context.Context, *semel.Execution) error {
			if runs++; fail {
				return errors.New("the bank is down")
			}
			return nil
		})
	}
	_, _ = run(), run()
	seen, err := g.Get(t.Context(), call)
	if err != nil || seen.State != store.Failed || runs != 1 {
		t.Fatalf("it is %v after %d runs, error %v", seen.State, runs, err)
	}
	if err := g.Reopen(t.Context(), seen, " "); !errors.Is(err, semel.ErrInvalid) {
		t.Errorf("without a reason: %v", err)
	}
	old := seen
	old.Fence--
	if err := g.Reopen(t.Context(), old, "ann: test"); !errors.Is(err, store.ErrChanged) {
		t.Errorf("an earlier fence: %v", err)
	}
	if err := g.Reopen(t.Context(), seen, "ann: test"); err != nil {
		t.Fatal(err)
	}
	now, err := g.Get(t.Context(), call)
	if err != nil || now.LastError != "reopened: ann: test" || now.Attempt != 0 || !now.Created.Equal(seen.Created) {
		t.Errorf("the record has error %q, attempt %d, created %v (was %v): %v", now.LastError, now.Attempt, now.Created, seen.Created, err)
	}
	if err := g.Reopen(t.Context(), seen, "ann: test"); !errors.Is(err, store.ErrChanged) {
		t.Errorf("a second time: %v", err)
	}
	fail = false
	if err := run(); err != nil || runs != 2 {
		t.Errorf("the next call: %v after %d runs", err, runs)
	}
	done, _ := g.Get(t.Context(), call)
	if err := g.Reopen(t.Context(), done, "ann: test"); !errors.Is(err, store.ErrChanged) {
		t.Errorf("a completed call: %v", err)
	}
}

// A handler has undone its steps before it failed for good. A call that is reopened would replay
// them, and the customer would get the goods for nothing.
func TestReopen_StepWasUndone_IsRefused(t *testing.T) {
	g := guard(t, memstore.New(nil), nil)
	_ = semel.Once(t.Context(), g, ann("o1"), func(ctx context.Context, x *semel.Execution) error {
		if err := semel.Once(ctx, g, x.Step("charge"), nothing); err != nil {
			return err
		}
		return semel.Final(errors.New("sold out, and the charge is refunded"))
	})
	seen := wantState(t, g, "o1", store.Failed)
	err := g.Reopen(t.Context(), seen, "ann: there are goods again")
	if !errors.Is(err, semel.ErrInvalid) || !strings.Contains(err.Error(), "(charge)") || !strings.Contains(err.Error(), "make a new call with another key") {
		t.Errorf("reopened: %v", err)
	}
	wantState(t, g, "o1", store.Failed)
	seen.Fence--
	wantErr(t, g.Reopen(t.Context(), seen, "ann: an earlier fence"), store.ErrChanged)
}

// A step that has failed for good would fail again in each run.
func TestReopen_StepFailedForGood_IsRefused(t *testing.T) {
	g := guard(t, memstore.New(nil), nil)
	_ = semel.Once(t.Context(), g, ann("k"), func(ctx context.Context, x *semel.Execution) error {
		_ = semel.Once(ctx, g, x.Step("reserve"), nothing)
		return semel.Once(ctx, g, x.Step("charge"), func(context.Context, *semel.Execution) error {
			return &semel.Failure{Code: "declined"}
		})
	})
	err := g.Reopen(t.Context(), wantState(t, g, "k", store.Failed), "ann: the card is valid again")
	if !errors.Is(err, semel.ErrInvalid) || !strings.Contains(err.Error(), "(reserve, charge)") {
		t.Errorf("reopened: %v", err)
	}
}

// A step's own call has used up its attempts, and the handler passes that failure on.
func TestReopen_FailureOfStepPassedOn_IsRefused(t *testing.T) {
	g := guard(t, memstore.New(nil), nil)
	_ = semel.Once(t.Context(), g, ann("k"), func(ctx context.Context, x *semel.Execution) error {
		_ = semel.Once(ctx, g, x.Step("hold"), nothing)
		return semel.Once(ctx, g, x.Step("charge"), func(context.Context, *semel.Execution) error {
			return &semel.Failure{Code: semel.CodeAttemptsExhausted}
		})
	})
	err := g.Reopen(t.Context(), wantState(t, g, "k", store.Failed), "ann: the bank is back")
	if !errors.Is(err, semel.ErrInvalid) || !strings.Contains(err.Error(), "(hold, charge)") {
		t.Errorf("reopened: %v", err)
	}
}

// The run that comes next replays the failure of a step, and takes the same way as before.
func TestReopen_AttemptsUsedUpAfterFailedStep_GoesOn(t *testing.T) {
	g := guard(t, memstore.New(nil), &semel.Options{MaxAttempts: 1})
	stockIsDown := true
	order := func() error {
		return semel.Once(t.Context(), g, ann("k"), func(ctx context.Context, x *semel.Execution) error {
			declined := semel.Once(ctx, g, x.Step("charge"), func(context.Context, *semel.Execution) error {
				return &semel.Failure{Code: "declined"}
			})
			if stockIsDown {
				return errBoom
			}
			return declined
		})
	}
	_ = order()
	if err := g.Reopen(t.Context(), wantState(t, g, "k", store.Failed), "ann: the stock is back"); err != nil {
		t.Fatal(err)
	}
	stockIsDown = false
	if f, ok := errors.AsType[*semel.Failure](order()); !ok || f.Code != "declined" {
		t.Errorf("the failure is %v, want declined", f)
	}
}

func TestReopen_AttemptsUsedUp_GoesOnAfterItsSteps(t *testing.T) {
	g := guard(t, memstore.New(nil), &semel.Options{MaxAttempts: 1})
	charges, fails := 0, true
	order := func() error {
		return semel.Once(t.Context(), g, ann("o1"), func(ctx context.Context, x *semel.Execution) error {
			err := semel.Once(ctx, g, x.Step("charge"), func(context.Context, *semel.Execution) error { charges++; return nil })
			if err == nil && fails {
				err = errBoom
			}
			return err
		})
	}
	_ = order()
	if err := g.Reopen(t.Context(), wantState(t, g, "o1", store.Failed), "ann: the bank is back"); err != nil {
		t.Fatal(err)
	}
	if fails = false; order() != nil || charges != 1 {
		t.Errorf("the step ran %d times", charges)
	}
}

// If nobody can say whether a call has steps, it is not reopened.
func TestReopen_StepsCannotBeRead_IsRefused(t *testing.T) {
	for _, c := range []struct{ answer, want error }{
		{errBoom, semel.ErrUnavailable}, {store.ErrCorrupt, store.ErrCorrupt}, {store.ErrLeaseLost, store.ErrChanged},
	} {
		mem := memstore.New(nil)
		g := guard(t, mem, nil)
		_, _ = g.Run(t.Context(), ann("k"), fail(semel.Final(errBoom)))
		seen := wantState(t, g, "k", store.Failed)
		err := guard(t, unreadableSteps{mem, c.answer}, &semel.Options{StoreTimeout: 20 * time.Millisecond}).Reopen(t.Context(), seen, "ann: test")
		wantErr(t, err, c.want)
		wantState(t, g, "k", store.Failed)
	}
}

type unreadableSteps struct {
	*memstore.Store
	err error
}

func (s unreadableSteps) Steps(context.Context, store.Lease) ([]store.Step, error) { return nil, s.err }

// A verdict, or a reopening, would leave the steps of a saga as they are.
func TestResolve_Saga_VerdictAndReopeningAreRefused(t *testing.T) {
	g, err := semel.New(memstore.New(nil), &semel.Options{OnDoubt: semel.Park})
	if err != nil {
		t.Fatal(err)
	}
	seen := store.Record{Key: saga.Key("payout", "ann", "e1"), State: store.Unknown}
	for _, v := range []semel.Verdict{semel.Happened(1), semel.DidNotHappen(), semel.FailedForGood(&semel.Failure{Message: "lost"})} {
		if err := g.Resolve(t.Context(), seen, v); !errors.Is(err, semel.ErrInvalid) || !strings.Contains(err.Error(), "use saga.Intervene") {
			t.Errorf("verdict %+v: %v", v, err)
		}
	}
	seen.State = store.Failed
	if err := g.Reopen(t.Context(), seen, "ann: test"); !errors.Is(err, semel.ErrInvalid) || !strings.Contains(err.Error(), "start one with another id") {
		t.Errorf("reopened: %v", err)
	}
}

func nothing(context.Context, *semel.Execution) error { return nil }
