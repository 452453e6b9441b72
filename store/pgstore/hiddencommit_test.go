package pgstore

import (
	"context"
	"database/sql"
	"errors"
	"strings"
	"testing"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/stdlib"

	"github.com/semel-go/semel"
	"github.com/semel-go/semel/store"
)

// A handler that commits by itself, begins another transaction, swallows the error of a
// statement in it and returns nil has had its effect.
func TestAtomic_HandlerCommitsAndSwallowsFailure_Parked(t *testing.T) {
	t.Parallel()
	script := func(p *shop) string { return "INSERT INTO " + p.table + " VALUES ('k'); COMMIT; BEGIN" }
	for name, run := range map[string]func(ctx context.Context, p *shop) error{
		"DoSQL": func(ctx context.Context, p *shop) error {
			db := stdlib.OpenDBFromPool(p.s.appPool)
			_, err := DoSQL(ctx, p.a, db, call("k"), func(ctx context.Context, _ *semel.Execution, tx *sql.Tx) (int, error) {
				if _, err := tx.ExecContext(ctx, script(p)); err != nil {
					t.Error(err)
				}
				_, _ = tx.ExecContext(ctx, "SELECT 1/0")
				return 1, nil
			})
			return err
		},
		"Conn": func(ctx context.Context, p *shop) error {
			return Once(ctx, p.a, call("k"), func(ctx context.Context, _ *semel.Execution, tx pgx.Tx) error {
				if _, err := tx.Conn().Exec(ctx, script(p)); err != nil {
					t.Error(err)
				}
				_, _ = tx.Exec(ctx, "SELECT 1/0")
				return nil
			})
		},
	} {
		t.Run(name, func(t *testing.T) {
			p := newShop(t, openNew(t, nil), nil)
			err := run(t.Context(), p)
			if r, rerr := p.record(t, "k"); r.State != store.Unknown || !errors.Is(err, semel.ErrInDoubt) {
				t.Errorf("the call: %v; the record is %v, %v; the effect is committed: %v", err, r.State, rerr, p.payments(t))
			}
		})
	}
}

// A step has no key that could be parked, so that its error must not say so.
func TestStep_HandlerCommits_ErrorSaysThatStepIsNotRecorded(t *testing.T) {
	t.Parallel()
	p := newShop(t, openNew(t, nil), nil)
	db := stdlib.OpenDBFromPool(p.s.appPool)
	_ = semel.Once(t.Context(), leased(t, p.s, nil), call("k"), func(ctx context.Context, x *semel.Execution) error {
		_, err := DoSQL(ctx, p.a, db, x.Step("pay"), func(_ context.Context, _ *semel.Execution, tx *sql.Tx) (int, error) { return 1, tx.Commit() })
		if !errors.Is(err, semel.ErrInDoubt) || strings.Contains(err.Error(), "parked") || !strings.Contains(err.Error(), "not recorded") {
			t.Errorf("the step: %v", err)
		}
		return err
	})
	if r, err := p.record(t, "k"); r.State != store.Released {
		t.Errorf("the record is %v, %v; want released, because the policy is Retry", r.State, err)
	}
}
