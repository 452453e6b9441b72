package pgstore

import (
	"context"
	"testing"

	"github.com/jackc/pgx/v5"

	"github.com/semel-go/semel"
	"github.com/semel-go/semel/store"
)

// brokenError panics in each method if it is nil.
type brokenError struct{ cause error }

func (e *brokenError) Error() string { return "broken: " + e.cause.Error() }
func (e *brokenError) Unwrap() error { return e.cause }

func TestAtomic_ErrorPanicsWhenRead_CountsAttempt(t *testing.T) {
	p := newShop(t, openNew(t, nil), &semel.Options{MaxAttempts: 2})
	var broken *brokenError
	for range 2 {
		if err := Once(t.Context(), p.a, call("k"), func(ctx context.Context, x *semel.Execution, tx pgx.Tx) error {
			_, _ = p.pay("k", nil)(ctx, x, tx)
			return broken
		}); err == nil {
			t.Error("the call succeeded")
		}
	}
	p.want(t)
	if r, err := p.record(t, "k"); err != nil || r.Attempt != 2 || r.State != store.Released {
		t.Errorf("the record is %v after attempt %d, error %v; want released after 2", r.State, r.Attempt, err)
	}
}

func TestRunBatch_ErrorPanicsWhenRead_FailsItsCallOnly(t *testing.T) {
	p := newShop(t, openNew(t, nil), nil)
	var broken *brokenError
	ended := p.a.RunBatch(t.Context(), []semel.Call{call("good"), call("bad")}, func(ctx context.Context, calls []*PendingCall) error {
		for _, c := range calls {
			if c.Index == 1 {
				c.Err = broken
			}
		}
		return nil
	})
	if ended[0].Err != nil || ended[1].Err == nil {
		t.Errorf("the calls ended with %v and %v", ended[0].Err, ended[1].Err)
	}
}
