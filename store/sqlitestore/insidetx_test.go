package sqlitestore

import (
	"context"
	"database/sql"
	"errors"
	"strings"
	"testing"
	"time"

	"github.com/semel-go/semel"
)

// A handler inside a handler of another store's Atomic has both transactions.
func TestTxFrom_NestedInAnotherStores_FindsBoth(t *testing.T) {
	t.Parallel()
	p, q := openShop(t, &Options{MaxTx: time.Minute}), openShop(t, nil)
	err := Once(t.Context(), p.a, call("outer"), func(ctx context.Context, x *semel.Execution, outer *sql.Tx) error {
		return Once(ctx, q.a, call("other"), func(ctx context.Context, x *semel.Execution, tx *sql.Tx) error {
			if in, _ := TxFrom(ctx); in != tx || in == outer {
				t.Error("the handler's transaction is not its own store's")
			}
			if _, err := p.s.Claim(ctx, proposal("outside")); err == nil || !strings.Contains(err.Error(), "transaction") {
				t.Errorf("a claim outside of the outer transaction: %v, want an error at once", err)
			}
			_, err := Do(ctx, p.a, call("inner"), pay("inner", nil))
			return err
		})
	})
	if err != nil {
		t.Error(err)
	}
	p.want(t, "inner")
}

// Goroutines that a handler leaves behind have its context, and no transaction.
func TestTxFrom_HandlerReturned_IsNone(t *testing.T) {
	t.Parallel()
	p := openShop(t, nil)
	var left context.Context
	keep := func(ctx context.Context, x *semel.Execution, tx *sql.Tx) error {
		left = context.WithoutCancel(ctx)
		return nil
	}
	use := func(key string) {
		t.Helper()
		if _, err := p.s.Claim(left, proposal(key)); err != nil {
			t.Errorf("a claim: %v", err)
		}
		if _, err := Do(left, p.a, call(key), pay(key, nil)); err != nil {
			t.Errorf("a run: %v", err)
		}
	}
	if err := Once(t.Context(), p.a, call("run"), keep); err != nil {
		t.Fatal(err)
	}
	use("a")
	tx := p.begin(t)
	err := semel.Once(t.Context(), p.a.In(tx), call("in"), func(ctx context.Context, x *semel.Execution) error { return keep(ctx, x, nil) })
	if err = errors.Join(err, tx.Commit()); err != nil {
		t.Fatal(err)
	}
	use("b")
	err = Once(t.Context(), p.a, call("outer"), func(ctx context.Context, x *semel.Execution, _ *sql.Tx) error {
		if err := Once(ctx, p.a, x.Step("inner"), keep); err != nil {
			return err
		}
		_, err := Do(left, p.a, call("c"), pay("c", nil)) // the outer handler's transaction is still there
		return errors.Join(err, errors.New("undo"))
	})
	if err == nil {
		t.Error("the outer call's failure is not told")
	}
	p.want(t, "a", "b")
}
