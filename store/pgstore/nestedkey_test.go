package pgstore

import (
	"context"
	"errors"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/semel-go/semel"
	"github.com/semel-go/semel/store"
)

// A handler makes a call with its own key, or with the key of a handler around it. The
// key is in progress.
func TestAtomic_SameKeyInsideHandler_InProgress(t *testing.T) {
	t.Parallel()
	p := newShop(t, openNew(t, nil), nil)
	ran := 0
	again := func(ctx context.Context, tx pgx.Tx) error {
		for name, r := range map[string]semel.Runner{"Run": p.a, "In": p.a.In(tx)} {
			_, err := r.Run(ctx, call("k"), func(context.Context, *semel.Execution) (store.Outcome, error) {
				t.Error("it runs within itself")
				return store.Outcome{}, nil
			})
			if !errors.Is(err, semel.ErrInProgress) {
				t.Errorf("by %s: %v, want ErrInProgress", name, err)
			}
		}
		return nil
	}
	handler := func(ctx context.Context, _ *semel.Execution) (store.Outcome, error) {
		ran++
		tx, _ := TxFrom(ctx)
		if err := again(ctx, tx); err != nil {
			return store.Outcome{}, err
		}
		_, err := p.a.Run(ctx, call("inner"), func(ctx context.Context, x *semel.Execution) (store.Outcome, error) {
			if err := again(ctx, tx); err != nil {
				return store.Outcome{}, err
			}
			_, err := p.pay("k", nil)(ctx, x, tx)
			return store.Outcome{}, err
		})
		return store.Outcome{}, err
	}
	for name, run := range map[string]func() error{
		"Run": func() error { _, err := p.a.Run(t.Context(), call("k"), handler); return err },
		"In": func() error {
			return pgx.BeginFunc(t.Context(), p.s.appPool, func(tx pgx.Tx) error {
				_, err := p.a.In(tx).Run(t.Context(), call("k"), handler)
				return err
			})
		},
		"RunBatch": func() error {
			return p.a.RunBatch(t.Context(), poll("before", "k", "behind"), func(ctx context.Context, newCalls []*PendingCall) error {
				_, err := handler(ctx, newCalls[1].Execution)
				return err
			})[1].Err
		},
	} {
		t.Run(name, func(t *testing.T) {
			mustExec(t, p.s.ownPool, "DELETE FROM "+p.s.quoted()+".semel_record; DELETE FROM "+p.table)
			if ran = 0; run() != nil || ran != 1 {
				t.Errorf("it ran %d times", ran)
			}
			p.want(t, "k")
		})
	}
}

// reserved makes calls of another Guard whose key is reserved, so that they end with
// semel.ErrInProgress.
func reserved(t *testing.T, p *shop) (run func(context.Context) error) {
	t.Helper()
	g := leased(t, p.s, nil)
	c := semel.Call{Operation: "other", Tenant: semel.Shared, Key: "x", Payload: semel.NoPayload()}
	if _, err := g.Reserve(t.Context(), c); err != nil {
		t.Fatal(err)
	}
	return func(ctx context.Context) error {
		return semel.Once(ctx, g, c, func(context.Context, *semel.Execution) error { return errors.New("a reserved call ran") })
	}
}

// The handler of one call meets another call in progress, which has not joined its
// transaction. That is an error of the handler like any other: the key of the call itself is
// not taken, so the call does not wait for it.
func TestAtomic_InnerCallElsewhereInProgress_CountsAttempt(t *testing.T) {
	t.Parallel()
	p := newShop(t, openNew(t, nil), &semel.Options{MaxAttempts: 2})
	inner, runs := reserved(t, p), 0
	for _, wrap := range []func(error) error{func(err error) error { return err }, semel.NoEffect} {
		c, before := call("k"), runs
		c.Wait = 500 * time.Millisecond
		err := Once(t.Context(), p.a, c, func(ctx context.Context, _ *semel.Execution, _ pgx.Tx) error {
			runs++
			return wrap(inner(ctx))
		})
		if !errors.Is(err, semel.ErrInProgress) || runs != before+1 {
			t.Errorf("the handler ran %d times: %v", runs-before, err)
		}
		if r, err := p.record(t, "k"); err != nil || r.Attempt != 1 {
			t.Errorf("the record is %v, attempt %d, %v", r.State, r.Attempt, err)
		}
	}
}

// A call for the key of its own handler finds it taken each time, so that to wait for it, and to
// run the handler again, never ends.
func TestAtomic_HandlerReturnsInProgressOfItsOwnKey_CountsAttempt(t *testing.T) {
	t.Parallel()
	p := newShop(t, openNew(t, nil), nil)
	c, runs := call("k"), 0
	c.Wait = 500 * time.Millisecond
	within := func(ctx context.Context) error {
		runs++
		return Once(ctx, p.a, call("k"), nil)
	}
	for form, run := range map[string]func() error{
		"Run": func() error {
			return Once(t.Context(), p.a, c, func(ctx context.Context, _ *semel.Execution, _ pgx.Tx) error { return within(ctx) })
		},
		"RunBatch": func() error {
			return p.a.RunBatch(t.Context(), []semel.Call{c}, func(ctx context.Context, _ []*PendingCall) error { return within(ctx) })[0].Err
		},
	} {
		mustExec(t, p.s.ownPool, "DELETE FROM "+p.s.quoted()+".semel_record")
		runs = 0
		if err := run(); !errors.Is(err, semel.ErrInProgress) || runs != 1 {
			t.Errorf("%s: the handler ran %d times: %v", form, runs, err)
		}
		if r, err := p.record(t, "k"); err != nil || r.Attempt != 1 {
			t.Errorf("%s: the record is %v, attempt %d, %v", form, r.State, r.Attempt, err)
		}
	}
}
