package semel_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"
	"unicode/utf8"

	"github.com/semel-go/semel"
	"github.com/semel-go/semel/store"
	"github.com/semel-go/semel/store/memstore"
)

func TestNoEffect_OfStep_DoesNotReleaseParent(t *testing.T) {
	g := guard(t, memstore.New(nil), &semel.Options{OnDoubt: semel.Park})
	effects := 0
	h := func(ctx context.Context, x *semel.Execution) (store.Outcome, error) {
		effects++ // the charge
		err := semel.Once(ctx, g, x.Step("mail"), func(context.Context, *semel.Execution) error {
			return semel.NoEffect(errors.New("smtp refused"))
		})
		if err != nil {
			return store.Outcome{}, fmt.Errorf("mail: %w", err)
		}
		return store.Outcome{}, nil
	}
	_, _ = g.Run(t.Context(), ann("k"), h)
	_, _ = g.Run(t.Context(), ann("k"), h)
	if effects != 1 {
		t.Errorf("%d effects under Park, want 1", effects)
	}
}

func TestNoEffect_JoinedWithPlainError_IsDoubt(t *testing.T) {
	g := guard(t, memstore.New(nil), &semel.Options{OnDoubt: semel.Park})
	_, _ = g.Run(t.Context(), ann("k"), fail(errors.Join(errors.New("charge: timeout"), semel.NoEffect(errors.New("mail: refused")))))
	wantState(t, g, "k", store.Unknown)
}

func TestFailure_LeaseLost_IsNotInError(t *testing.T) {
	declined := &semel.Failure{Code: "declined"}
	h := &hooks{Store: memstore.New(nil), settle: func(context.Context, store.Lease, store.Settlement) error { return store.ErrLeaseLost }}
	_, err := guard(t, h, nil).Run(t.Context(), ann("k"), fail(declined))
	wantErr(t, err, semel.ErrLeaseLost)
	if errors.Is(err, declined) {
		t.Error("errors.Is finds the failure, as if it were kept")
	}
}

func TestFailure_OfReconciler_IsNotInError(t *testing.T) {
	declined := &semel.Failure{Code: "declined"}
	g := parking(t, memstore.New(nil), reconcilerOf(semel.Verdict{}, declined))
	_, _ = g.Run(t.Context(), ann("k"), fail(errBoom))
	_, err := g.Run(t.Context(), ann("k"), never(t))
	wantErr(t, err, semel.ErrParked)
	if errors.Is(err, declined) {
		t.Error("errors.Is finds the failure, as if it were kept")
	}
}

func TestLastError_NULOrInvalidUTF8_IsRemoved(t *testing.T) {
	g := guard(t, memstore.New(nil), nil)
	_, _ = g.Run(t.Context(), ann("k"), fail(errors.New("bad \x00 and \xff "+strings.Repeat("ü", 600))))
	r := record(t, g, "k")
	if !utf8.ValidString(r.LastError) || strings.Contains(r.LastError, "\x00") {
		t.Errorf("LastError is %q, want UTF-8 without NUL", r.LastError)
	}
	if len(r.LastError) > 510 {
		t.Errorf("LastError has %d bytes, want at most 510", len(r.LastError))
	}
}

func TestError_InvalidPayload_DoesNotShowIt(t *testing.T) {
	g := guard(t, memstore.New(nil), nil)
	_, err := g.Run(t.Context(), semel.Call{Operation: pay, Tenant: "ann", Key: "k", Payload: semel.JSON(json.RawMessage([]byte(`{"card":4111111111111111e999}`)))}, never(t))
	if strings.Contains(err.Error(), "4111") {
		t.Errorf("the error shows the payload: %v", err)
	}
}

func TestNoEffect_OfFailure_RunsAgain(t *testing.T) {
	g := guard(t, memstore.New(nil), nil)
	_, _ = g.Run(t.Context(), ann("k"), fail(semel.NoEffect(&semel.Failure{Code: "x"})))
	res, err := g.Run(t.Context(), ann("k"), answer("again"))
	wantBody(t, res, err, "again", false)
}

func TestFailure_TypedNil_DoesNotPanic(t *testing.T) {
	g := guard(t, memstore.New(nil), nil)
	defer func() {
		if p := recover(); p != nil {
			t.Errorf("Run panicked with %v; the record is %v", p, record(t, g, "k").State)
		}
	}()
	var f *semel.Failure
	_, _ = g.Run(t.Context(), ann("k"), fail(f))
}

// The text of an error says when to call again.
func TestError_RetryAfter_IsInText(t *testing.T) {
	for after, want := range map[time.Duration]string{
		0:                       `semel: in progress (operation "pay")`,
		28*time.Second + 1:      `semel: in progress (operation "pay"); call again after at most 29s`,
		1500 * time.Microsecond: `semel: in progress (operation "pay"); call again after at most 2ms`,
	} {
		if got := (&semel.Error{Reason: semel.ErrInProgress, Operation: "pay", RetryAfter: after}).Error(); got != want {
			t.Errorf("got %q, want %q", got, want)
		}
	}
}
