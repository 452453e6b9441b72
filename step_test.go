package semel_test

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"testing"

	"github.com/semel-go/semel"
	"github.com/semel-go/semel/store"
	"github.com/semel-go/semel/store/memstore"
)

func TestStep_NameUsedTwiceInRun_IsRefused(t *testing.T) {
	g := guard(t, memstore.New(nil), nil)
	runs := 0
	flow := func(ctx context.Context, x *semel.Execution) error {
		if err := once(ctx, g, x, "mail", &runs, nil); err != nil {
			t.Errorf("the first mail: %v", err)
		}
		_, err := g.Run(ctx, x.Step("mail"), never(t))
		wantErr(t, err, semel.ErrInvalid)
		err = semel.Once(ctx, g, x.Step("outer"), func(ctx context.Context, o *semel.Execution) error {
			_, err := g.Run(ctx, x.Step("outer"), never(t)) // it runs now
			wantErr(t, err, semel.ErrInvalid)
			return nil
		})
		if err != nil {
			t.Error(err)
		}
		return errBoom
	}
	for range 2 { // also if the step is replayed
		wantErr(t, semel.Once(t.Context(), g, ann("k"), flow), errBoom)
	}
	if runs != 1 {
		t.Errorf("mailed %d times", runs)
	}
}

func TestStep_FailsInRun_MayRunAgainUnlessParked(t *testing.T) {
	for _, c := range []struct {
		policy semel.Policy
		err    error
		again  bool
	}{
		{semel.Retry, errBoom, true}, {semel.Park, errBoom, false},
		{semel.Retry, semel.NoEffect(errBoom), true}, {semel.Park, semel.NoEffect(errBoom), true},
	} {
		g := guard(t, memstore.New(nil), &semel.Options{OnDoubt: c.policy})
		runs := 0
		_ = semel.Once(t.Context(), g, ann("k"), func(ctx context.Context, x *semel.Execution) error {
			wantErr(t, once(ctx, g, x, "charge", &runs, c.err), errBoom)
			err := once(ctx, g, x, "charge", &runs, nil)
			if ran := runs == 2; ran != c.again || !c.again && !errors.Is(err, semel.ErrParked) {
				t.Errorf("%v after %v: ran again %v, error %v", c.policy, c.err, ran, err)
			}
			return nil
		})
	}
}

func TestStep_Panics_IsInDoubt(t *testing.T) {
	st := memstore.New(nil)
	g := guard(t, st, &semel.Options{OnDoubt: semel.Park})
	_ = semel.Once(t.Context(), g, ann("k"), func(ctx context.Context, x *semel.Execution) error {
		func() {
			defer func() { _ = recover() }()
			_ = semel.Once(ctx, g, x.Step("charge"), func(context.Context, *semel.Execution) error { panic("boom") })
		}()
		_, err := g.Run(ctx, x.Step("charge"), never(t))
		wantErr(t, err, semel.ErrParked)
		return nil
	})
	if names := stepNames(t, st, record(t, g, "k")); names != "" {
		t.Errorf("the steps %q are recorded", names)
	}
}

func TestStep_Failure_IsReplayed(t *testing.T) {
	g := guard(t, memstore.New(nil), nil)
	declined := &semel.Failure{Code: "declined", Message: "no", Data: []byte("d")}
	runs := 0
	for range 3 {
		err := semel.Once(t.Context(), g, ann("k"), func(ctx context.Context, x *semel.Execution) error {
			err := once(ctx, g, x, "charge", &runs, fmt.Errorf("wrapped: %w", declined))
			if f, ok := errors.AsType[*semel.Failure](err); !ok || f.Code != "declined" || string(f.Data) != "d" {
				t.Errorf("the step returns %v", err)
			}
			return errBoom // not the failure
		})
		wantErr(t, err, errBoom)
	}
	if runs != 1 {
		t.Errorf("the step ran %d times", runs)
	}
}

func TestStep_OtherPayload_IsMismatch(t *testing.T) {
	st := memstore.New(nil)
	old := guard(t, st, &semel.Options{Secrets: []semel.Secret{secret("old")}})
	rotated := guard(t, st, &semel.Options{Secrets: []semel.Secret{secret("new"), secret("old")}})
	unknown := guard(t, st, &semel.Options{Secrets: []semel.Secret{secret("new")}})
	flow := func(g *semel.Guard, cents int, fn semel.Handler) error {
		return semel.Once(t.Context(), g, ann("k"), func(ctx context.Context, x *semel.Execution) error {
			call := x.Step("charge")
			call.Payload = semel.JSON(cents)
			_, err := g.Run(ctx, call, fn)
			return errors.Join(errBoom, err)
		})
	}
	wantErr(t, flow(old, 100, answer("paid")), errBoom)
	wantErr(t, flow(old, 200, never(t)), semel.ErrMismatch)
	wantErr(t, flow(rotated, 200, never(t)), semel.ErrMismatch)
	wantErr(t, flow(unknown, 100, never(t)), semel.ErrUnverifiable)
	if err := flow(rotated, 100, never(t)); errors.Is(err, semel.ErrMismatch) || errors.Is(err, semel.ErrUnverifiable) {
		t.Errorf("the same payload with a rotated secret: %v", err)
	}
	if err := flow(old, 200, never(t)); !strings.Contains(err.Error(), `step "charge"`) {
		t.Errorf("the error does not name the step: %v", err)
	}
}

// bare is a store without optional interfaces.
type bare struct{ store.Store }

func TestStep_StoreWithoutJournal_IsRefused(t *testing.T) {
	g := guard(t, bare{memstore.New(nil)}, nil)
	err := semel.Once(t.Context(), g, ann("k"), func(ctx context.Context, x *semel.Execution) error {
		_, err := g.Run(ctx, x.Step("charge"), never(t))
		return err
	})
	wantErr(t, err, semel.ErrInvalid)
	for _, part := range []string{`step "charge"`, "store.Journal", "sqlitestore", "DownstreamKey"} {
		if !strings.Contains(err.Error(), part) {
			t.Errorf("the error lacks %q: %v", part, err)
		}
	}
}

func TestStep_OtherGuard_IsRefused(t *testing.T) {
	st := memstore.New(nil)
	g, other := guard(t, st, nil), guard(t, st, nil)
	_ = semel.Once(t.Context(), g, ann("k"), func(ctx context.Context, x *semel.Execution) error {
		_, err := other.Run(ctx, x.Step("charge"), never(t))
		wantErr(t, err, semel.ErrInvalid)
		_, err = g.Reserve(ctx, x.Step("charge"))
		wantErr(t, err, semel.ErrInvalid)
		_, err = g.Get(ctx, x.Step("charge"))
		wantErr(t, err, semel.ErrInvalid)
		return nil
	})
}

// sized runs steps with results of these sizes until one is refused. gone counts the
// replays whose result was not kept.
func sized(t *testing.T, g *semel.Guard, sizes []int) (ran, gone int, refused error) {
	t.Helper()
	err := semel.Once(t.Context(), g, ann("k"), func(ctx context.Context, x *semel.Execution) error {
		for i, n := range sizes {
			res, err := g.Run(ctx, x.Step(fmt.Sprint(i)), func(context.Context, *semel.Execution) (store.Outcome, error) {
				ran++
				return store.Outcome{Body: make([]byte, n)}, nil
			})
			switch {
			case errors.Is(err, semel.ErrNotKept):
				gone++
			case err != nil:
				refused = err
				return errBoom
			case len(res.Body) != n:
				t.Errorf("step %d returns %d bytes, want %d", i, len(res.Body), n)
			}
		}
		return errBoom
	})
	wantErr(t, err, errBoom)
	return ran, gone, refused
}

func TestStep_ResultsTooLarge_AreRefusedBeforeTheyRun(t *testing.T) {
	g := guard(t, memstore.New(nil), nil)
	sizes := []int{300 << 10, 300 << 10, 300 << 10}
	for range 200 {
		sizes = append(sizes, 2<<10)
	}
	ran, _, refused := sized(t, g, sizes)
	if !errors.Is(refused, semel.ErrInvalid) || !strings.Contains(refused.Error(), "bytes") || ran < 50 || ran > 100 {
		t.Errorf("%d steps ran before %v; want about 60, until the room for results is used up", ran, refused)
	}
	again, gone, _ := sized(t, g, sizes)
	if again != 0 || gone > 1 { // the last may not have fitted
		t.Errorf("%d steps ran again, %d results are gone", again, gone)
	}
}

func TestStep_ResultDoesNotFit_LeavesTombstone(t *testing.T) {
	g := guard(t, memstore.New(nil), nil)
	sizes := []int{300 << 10, 300 << 10, 300 << 10, 300 << 10, 300 << 10, 10}
	if ran, gone, refused := sized(t, g, sizes); ran != 6 || gone != 0 || refused != nil {
		t.Errorf("%d steps ran, %d results gone, error %v", ran, gone, refused)
	}
	if ran, gone, refused := sized(t, g, sizes); ran != 0 || gone != 2 || refused != nil {
		t.Errorf("%d steps ran again, %d results gone, error %v; want 0 and 2", ran, gone, refused)
	}
}

func TestStep_TooMany_IsRefusedBeforeItRuns(t *testing.T) {
	st := memstore.New(nil)
	g := guard(t, st, nil)
	runs := 0
	err := semel.Once(t.Context(), g, ann("k"), func(ctx context.Context, x *semel.Execution) error {
		for i := range store.MaxSteps + 1 {
			if err := once(ctx, g, x, fmt.Sprint(i), &runs, nil); err != nil {
				return err
			}
		}
		return nil
	})
	wantErr(t, err, semel.ErrInvalid)
	if runs != store.MaxSteps {
		t.Errorf("%d steps ran, want %d", runs, store.MaxSteps)
	}
}

func TestStep_InRerun_RunsAgain(t *testing.T) {
	g := guard(t, memstore.New(nil), &semel.Options{Rerun: true})
	runs := 0
	for range 3 {
		err := semel.Once(t.Context(), g, ann("k"), func(ctx context.Context, x *semel.Execution) error {
			return once(ctx, g, x, "read", &runs, nil)
		})
		if err != nil {
			t.Fatal(err)
		}
	}
	if runs != 3 {
		t.Errorf("the step ran %d times in 3 runs", runs)
	}
}

func TestStep_InUnprotectedRun_RunsWithoutRecord(t *testing.T) {
	st := &hooks{Store: memstore.New(nil), claim: func(context.Context, store.Proposal) (store.Found, error) { return store.Found{}, errBoom }}
	g := guard(t, st, &semel.Options{UnprotectedOnOutage: true})
	runs := 0
	err := semel.Once(t.Context(), g, ann("k"), func(ctx context.Context, x *semel.Execution) error {
		return once(ctx, g, x, "charge", &runs, nil)
	})
	if err != nil || runs != 1 {
		t.Errorf("the step ran %d times, error %v", runs, err)
	}
}

// A reconciler finds out by the recorded steps what has happened.
func TestStep_InReconciler_IsReadOnly(t *testing.T) {
	st := memstore.New(nil)
	var g *semel.Guard
	runs := 0
	g = parking(t, st, func(ctx context.Context, x *semel.Execution) (semel.Verdict, error) {
		receipt, err := semel.Do(ctx, g, x.Step("charge"), func(context.Context, *semel.Execution) (string, error) {
			t.Error("a reconciler has run a step")
			return "", nil
		})
		if err != nil || receipt != "receipt" {
			t.Errorf("the reconciler reads %q, %v", receipt, err)
		}
		_, err = g.Run(ctx, x.Step("mail"), never(t))
		wantErr(t, err, semel.ErrParked)
		return semel.DidNotHappen(), nil
	})
	flow := func(result error) error {
		return semel.Once(t.Context(), g, ann("k"), func(ctx context.Context, x *semel.Execution) error {
			_, err := semel.Do(ctx, g, x.Step("charge"), func(context.Context, *semel.Execution) (string, error) { runs++; return "receipt", nil })
			return errors.Join(err, result)
		})
	}
	wantErr(t, flow(errBoom), semel.ErrParked)
	if err := flow(nil); err != nil || runs != 1 {
		t.Errorf("charged %d times, error %v", runs, err)
	}
}

func TestStep_ResolvedAsHappened_StaysVisible(t *testing.T) {
	st := memstore.New(nil)
	g := guard(t, st, &semel.Options{OnDoubt: semel.Park})
	runs := 0
	err := semel.Once(t.Context(), g, ann("k"), func(ctx context.Context, x *semel.Execution) error {
		return errors.Join(once(ctx, g, x, "charge", &runs, nil), errBoom)
	})
	wantErr(t, err, semel.ErrParked)
	for _, v := range []semel.Verdict{semel.Happened(1), semel.FailedForGood(nil)} {
		if err := g.Resolve(t.Context(), record(t, g, "k"), v); err == nil {
			if names := stepNames(t, st, record(t, g, "k")); names != "charge" {
				t.Errorf("the resolved record has the steps %q", names)
			}
		}
	}
}
