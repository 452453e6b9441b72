package semel_test

import (
	"context"
	"encoding/json"
	"errors"
	"strings"
	"testing"

	"github.com/semel-go/semel"
	"github.com/semel-go/semel/driver"
	"github.com/semel-go/semel/store"
	"github.com/semel-go/semel/store/memstore"
)

// unencodable panics when it is encoded or decoded.
type unencodable struct{}

func (unencodable) MarshalJSON() ([]byte, error) { panic("no encoding") }

func (*unencodable) UnmarshalJSON([]byte) error { panic("no decoding") }

// brokenError panics in each method if it is nil, as errors do whose authors did not
// think of a nil pointer in an error.
type brokenError struct{ cause error }

func (e *brokenError) Error() string   { return "broken: " + e.cause.Error() }
func (e *brokenError) Unwrap() error   { return e.cause }
func (e *brokenError) Is(t error) bool { return e.cause == t }

func typedNil() error {
	var e *brokenError
	return e
}

func wantReason(t *testing.T, err, reason error) {
	t.Helper()
	if e, ok := errors.AsType[*semel.Error](err); !ok || e.Reason != reason || e.Cause == nil || e.Operation == "" {
		t.Errorf("got %v; want an *Error with the reason %v and a cause", err, reason)
	}
}

func TestDo_ResultPanicsWhenEncoded_IsDoneAndNotKept(t *testing.T) {
	g := guard(t, memstore.New(nil), nil)
	runs := 0
	for i := range 3 {
		_, err := semel.Do(t.Context(), g, ann("k"), func(context.Context, *semel.Execution) (unencodable, error) {
			runs++
			return unencodable{}, nil
		})
		wantErr(t, err, semel.ErrNotKept)
		if i == 0 { // the caller of the run learns why
			wantReason(t, err, semel.ErrNotKept)
		}
	}
	if wantState(t, g, "k", store.Completed); runs != 1 {
		t.Errorf("the handler ran %d times", runs)
	}
}

func TestStep_ResultPanicsWhenEncoded_IsDoneAndNotKept(t *testing.T) {
	g := guard(t, memstore.New(nil), nil)
	runs := 0
	for range 2 {
		err := semel.Once(t.Context(), g, ann("k"), func(ctx context.Context, x *semel.Execution) error {
			_, err := semel.Do(ctx, g, x.Step("charge"), func(context.Context, *semel.Execution) (unencodable, error) {
				runs++
				return unencodable{}, nil
			})
			wantErr(t, err, semel.ErrNotKept)
			return errBoom
		})
		wantErr(t, err, errBoom)
	}
	if runs != 1 {
		t.Errorf("the step ran %d times", runs)
	}
}

// The type of the result has changed since the first run, or its codec is gone.
func TestDo_KeptResultDoesNotDecode_IsNotKeptWithCause(t *testing.T) {
	g := guard(t, memstore.New(nil), nil)
	text := func(context.Context, *semel.Execution) (string, error) { return "text", nil }
	if _, err := semel.Do(t.Context(), g, ann("text"), text); err != nil {
		t.Fatal(err)
	}
	_, err := semel.Do(t.Context(), g, ann("text"), func(context.Context, *semel.Execution) (int, error) { return 0, errBoom })
	wantReason(t, err, semel.ErrNotKept)
	if _, ok := errors.AsType[*json.UnmarshalTypeError](err); !ok {
		t.Errorf("the cause is lost: %v", err)
	}
	_, err = semel.Do(t.Context(), g, ann("text"), func(context.Context, *semel.Execution) (unencodable, error) { return unencodable{}, errBoom })
	wantReason(t, err, semel.ErrNotKept)
	if _, err := g.Run(t.Context(), ann("raw"), answer("raw")); err != nil {
		t.Fatal(err)
	}
	_, err = semel.Do(t.Context(), g, ann("raw"), text)
	wantReason(t, err, semel.ErrNotKept)
}

func TestStep_KeptResultDoesNotDecode_NamesTheStep(t *testing.T) {
	g := guard(t, memstore.New(nil), nil)
	runs := 0
	flow := func(read func(ctx context.Context, x *semel.Execution) error) error {
		return semel.Once(t.Context(), g, ann("k"), func(ctx context.Context, x *semel.Execution) error { return errors.Join(read(ctx, x), errBoom) })
	}
	wantErr(t, flow(func(ctx context.Context, x *semel.Execution) error {
		_, err := semel.Do(ctx, g, x.Step("charge"), func(context.Context, *semel.Execution) (string, error) { runs++; return "receipt", nil })
		return err
	}), errBoom)
	err := flow(func(ctx context.Context, x *semel.Execution) error {
		_, err := semel.Do(ctx, g, x.Step("charge"), func(context.Context, *semel.Execution) (int, error) { runs++; return 1, nil })
		wantErr(t, err, semel.ErrNotKept)
		return err
	})
	if !strings.Contains(err.Error(), `step "charge"`) || runs != 1 {
		t.Errorf("the step ran %d times; the error is %v", runs, err)
	}
}

func TestRun_ErrorPanicsWhenRead_IsSettled(t *testing.T) {
	for name, err := range map[string]error{
		"a nil pointer": typedNil(), "a nil cause": &brokenError{}, "joined": errors.Join(errBoom, typedNil()),
		"without effect": semel.NoEffect(typedNil()), "final": semel.Final(typedNil()),
	} {
		for policy, want := range map[semel.Policy]store.State{semel.Retry: store.Released, semel.Park: store.Unknown} {
			switch name {
			case "without effect":
				want = store.Released
			case "final":
				want = store.Failed
			}
			g := guard(t, memstore.New(nil), &semel.Options{OnDoubt: policy})
			_, got := g.Run(t.Context(), ann("k"), fail(err))
			if got == nil || !strings.Contains(got.Error(), "brokenError") && name != "joined" {
				t.Errorf("%s: got %v, want an error that names the type", name, got)
			}
			wantState(t, g, "k", want)
			tx := newTx()
			if _, err := driver.RunIn(t.Context(), g, tx, ann("k"), tx.effect(err)); policy == semel.Retry && err == nil {
				t.Errorf("%s: the call in a transaction succeeded", name)
			}
		}
	}
}

func TestResolve_ValuePanicsWhenEncoded_IsInvalid(t *testing.T) {
	g := guard(t, memstore.New(nil), &semel.Options{OnDoubt: semel.Park})
	_, _ = g.Run(t.Context(), ann("k"), fail(errBoom))
	wantErr(t, g.Resolve(t.Context(), wantState(t, g, "k", store.Unknown), semel.Happened(unencodable{})), semel.ErrInvalid)
	wantState(t, g, "k", store.Unknown)
}

func TestReconcile_ValuePanicsWhenEncoded_StaysParked(t *testing.T) {
	g := parking(t, memstore.New(nil), reconcilerOf(semel.Happened(unencodable{}), nil))
	_, _ = g.Run(t.Context(), ann("k"), fail(errBoom))
	_, err := g.Run(t.Context(), ann("k"), never(t))
	wantErr(t, err, semel.ErrParked)
	wantState(t, g, "k", store.Unknown)
}

func TestJSON_ValuePanics_CallIsInvalid(t *testing.T) {
	g := guard(t, memstore.New(nil), nil)
	_, err := g.Run(t.Context(), paying("k", semel.JSON(unencodable{})), never(t))
	wantErr(t, err, semel.ErrInvalid)
}

func TestRun_KeptFailureUnreadable_IsCorrupt(t *testing.T) {
	st := memstore.New(nil)
	g := guard(t, st, nil)
	r := crash(t, st, semel.Retry, "k", 1<<40)
	if err := st.Settle(t.Context(), r.Lease(), store.Settlement{State: store.Failed, Keep: 1 << 50, Outcome: store.Outcome{Codec: "other"}}); err != nil {
		t.Fatal(err)
	}
	_, err := g.Run(t.Context(), ann("k"), never(t))
	wantReason(t, err, store.ErrCorrupt)
}
