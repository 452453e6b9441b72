package pgstore

import (
	"context"
	"errors"
	"testing"

	"github.com/jackc/pgx/v5"

	"github.com/semel-go/semel"
)

// A handler of one store runs inside a handler of another. A call of the outer store
// joins the outer transaction, and is rolled back with it.
func TestRun_InsideTwoStores_JoinsOwn(t *testing.T) {
	t.Parallel()
	p, q := newShop(t, openNew(t, nil), nil), newShop(t, openNew(t, nil), nil)
	back := errors.New("all is rolled back")
	inside := func(ctx context.Context, _ *semel.Execution, _ pgx.Tx) error {
		if err := Once(ctx, q.a, call("other"), func(ctx context.Context, _ *semel.Execution, _ pgx.Tx) error {
			_, err := Do(ctx, p.a, call("inner"), p.pay("inner", nil))
			return err
		}); err != nil {
			t.Error(err)
		}
		return back
	}
	for name, run := range map[string]func() error{
		"Run": func() error { return Once(t.Context(), p.a, call("outer"), inside) },
		"In": func() error {
			return pgx.BeginFunc(t.Context(), p.s.appPool, func(tx pgx.Tx) error {
				return semel.Once(t.Context(), p.a.In(tx), call("outer"), func(ctx context.Context, x *semel.Execution) error { return inside(ctx, x, tx) })
			})
		},
		"RunBatch": func() error {
			return p.a.RunBatch(t.Context(), poll("outer"), func(ctx context.Context, newCalls []*PendingCall) error {
				return inside(ctx, newCalls[0].Execution, nil)
			})[0].Err
		},
	} {
		t.Run(name, func(t *testing.T) {
			if err := run(); !errors.Is(err, back) {
				t.Error(err)
			}
			p.want(t)
		})
	}
}

// A goroutine of the handler may use the context later. The transaction has ended, and
// the key is no longer running.
func TestTxContext_AfterHandler_NotUsed(t *testing.T) {
	t.Parallel()
	p := newShop(t, openNew(t, nil), nil)
	var left context.Context
	leave := func(ctx context.Context, _ *semel.Execution) error {
		left = context.WithoutCancel(ctx)
		return nil
	}
	for name, run := range map[string]func(key string) error{
		"Run": func(key string) error { return semel.Once(t.Context(), p.a, call(key), leave) },
		"In": func(key string) error {
			return pgx.BeginFunc(t.Context(), p.s.appPool, func(tx pgx.Tx) error {
				return semel.Once(t.Context(), p.a.In(tx), call(key), leave)
			})
		},
		"RunBatch": func(key string) error {
			return p.a.RunBatch(t.Context(), poll(key), func(ctx context.Context, newCalls []*PendingCall) error {
				return leave(ctx, newCalls[0].Execution)
			})[0].Err
		},
	} {
		t.Run(name, func(t *testing.T) {
			if err := run(name); err != nil {
				t.Fatal(err)
			}
			later := "later " + name
			if _, err := Do(left, p.a, call(later), p.pay(later, nil)); err != nil {
				t.Error(err)
			}
			mustExec(t, p.s.ownPool, "DELETE FROM "+p.s.quoted()+".semel_record")
			if err := pgx.BeginFunc(t.Context(), p.s.appPool, func(tx pgx.Tx) error { // its key, which is free again
				return semel.Once(left, p.a.In(tx), call(name), func(context.Context, *semel.Execution) error { return nil })
			}); err != nil {
				t.Error(err)
			}
		})
	}
	p.want(t, "later In", "later Run", "later RunBatch")
}
