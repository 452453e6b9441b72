package semel_test

import (
	"context"
	"errors"
	"testing"
	"time"

	"github.com/semel-go/semel"
	"github.com/semel-go/semel/store"
	"github.com/semel-go/semel/store/memstore"
)

// with is a call with a payload.
func with(key, payload string) semel.Call { return paying(key, semel.Bytes([]byte(payload))) }

func TestNoEffect_NothingHappenedBefore_FreesKeyForOtherPayload(t *testing.T) {
	for _, policy := range []semel.Policy{semel.Retry, semel.Park} {
		g := guard(t, memstore.New(nil), &semel.Options{OnDoubt: policy, MaxAttempts: 1})
		for _, payload := range []string{"digest without a body", "another boundary", "another boundary"} {
			_, err := g.Run(t.Context(), with("k", payload), fail(semel.NoEffect(errBoom)))
			wantErr(t, err, errBoom)
		}
		res, err := g.Run(t.Context(), with("k", "the real body"), answer("done"))
		wantBody(t, res, err, "done", false)
		_, err = g.Run(t.Context(), with("k", "otp=good"), never(t))
		wantErr(t, err, semel.ErrMismatch)
	}
}

func TestNoEffect_AfterDoubt_KeyStaysBound(t *testing.T) {
	g := guard(t, memstore.New(nil), nil)
	_, err := g.Run(t.Context(), with("k", "first"), fail(errBoom)) // it may have had an effect
	wantErr(t, err, errBoom)
	_, err = g.Run(t.Context(), with("k", "first"), fail(semel.NoEffect(errBoom)))
	wantErr(t, err, errBoom)
	_, err = g.Run(t.Context(), with("k", "second"), never(t))
	wantErr(t, err, semel.ErrMismatch)
}

func TestNoEffect_HandlerAskedForStep_KeyStaysBound(t *testing.T) {
	g := guard(t, memstore.New(nil), nil)
	_, err := g.Run(t.Context(), with("k", "first"), func(ctx context.Context, x *semel.Execution) (store.Outcome, error) {
		if err := semel.Once(ctx, g, x.Step("charge"), func(context.Context, *semel.Execution) error { return nil }); err != nil {
			t.Error(err)
		}
		return store.Outcome{}, semel.NoEffect(errBoom)
	})
	wantErr(t, err, errBoom)
	_, err = g.Run(t.Context(), with("k", "second"), never(t))
	wantErr(t, err, semel.ErrMismatch)
}

// The work of a reservation was promised, so its payload stays.
func TestNoEffect_OfReservedCall_TokenHolds(t *testing.T) {
	g := guard(t, memstore.New(nil), nil)
	ticket := reserve(t, g, with("k", "first"))
	for range 2 {
		_, err := g.Run(t.Context(), redeem(t, g, ticket.Token), fail(semel.NoEffect(errBoom)))
		wantErr(t, err, errBoom)
	}
	_, err := g.Reserve(t.Context(), with("k", "second"))
	wantErr(t, err, semel.ErrMismatch)
	res, err := g.Run(t.Context(), redeem(t, g, ticket.Token), answer("done"))
	wantBody(t, res, err, "done", false)
}

func TestInProgress_Error_SaysHowLongRunGoesOn(t *testing.T) {
	st, advance := newClockedStore()
	g := guard(t, st, nil)
	crash(t, st, semel.Retry, "k", time.Minute)
	for _, want := range []time.Duration{3 * time.Second, 20 * time.Second} {
		advance(want)
		_, err := g.Run(t.Context(), ann("k"), never(t))
		wantErr(t, err, semel.ErrInProgress)
		if e, ok := errors.AsType[*semel.Error](err); !ok || e.Running != want {
			t.Errorf("after %v the error is %+v", want, e)
		}
		advance(-want)
	}
}
