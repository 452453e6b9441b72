package pgstore

import (
	"context"
	"errors"
	"testing"

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
		"RunWhole": func() error {
			return p.a.RunWhole(t.Context(), poll("before", "k", "behind"), func(ctx context.Context, fresh []*PendingCall) error {
				_, err := handler(ctx, fresh[1].Execution)
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
