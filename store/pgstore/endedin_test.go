package pgstore

import (
	"context"
	"errors"
	"strings"
	"testing"

	"github.com/jackc/pgx/v5"

	"github.com/semel-go/semel"
	"github.com/semel-go/semel/store"
	"github.com/semel-go/semel/store/pgstore/internal/handlertx"
)

// A handler of Atomic.In ends the caller's transaction with its connection, and begins another
// one: the error names the rule, nothing is recorded, and no result is kept.
func TestIn_HandlerBeginsOtherTransaction_NamesTheRule(t *testing.T) {
	t.Parallel()
	for _, script := range []string{"COMMIT", "COMMIT; BEGIN", "ROLLBACK; BEGIN", "COMMIT AND CHAIN"} {
		for name, result := range map[string]error{"nil": nil, "an error": errors.New("down"), "a failure": &semel.Failure{Code: "declined"}} {
			t.Run(script+", "+name, func(t *testing.T) {
				p := newShop(t, openNew(t, nil), nil)
				tx := beginTx(t, p.s, pgx.TxOptions{})
				_, err := p.a.In(tx).Run(t.Context(), call("k"), func(ctx context.Context, _ *semel.Execution) (store.Outcome, error) {
					inner, _ := TxFrom(ctx)
					if _, err := inner.Exec(ctx, "INSERT INTO "+p.table+" VALUES ('k')"); err != nil {
						t.Error(err)
					}
					if _, err := inner.Conn().PgConn().Exec(ctx, script).ReadAll(); err != nil {
						t.Error(err)
					}
					return store.Outcome{}, result
				})
				if _, kept := errors.AsType[*semel.Failure](err); err == nil || kept || !strings.Contains(err.Error(), handlertx.ErrEnded.Error()) {
					t.Errorf("got %v, want an error that names the rule, and no Failure", err)
				}
				_ = tx.Commit(t.Context())
				if r, err := p.record(t, "k"); !errors.Is(err, store.ErrNotFound) {
					t.Errorf("the record is %v, %v; want none", r.State, err)
				}
			})
		}
	}
	t.Run("the connection ends nothing", func(t *testing.T) {
		p := newShop(t, openNew(t, nil), nil)
		tx := beginTx(t, p.s, pgx.TxOptions{})
		_, err := p.a.In(tx).Run(t.Context(), call("k"), func(ctx context.Context, _ *semel.Execution) (store.Outcome, error) {
			inner, _ := TxFrom(ctx)
			_, err := inner.Conn().Exec(ctx, "INSERT INTO "+p.table+" VALUES ('k')")
			return store.Outcome{}, err
		})
		if err != nil {
			t.Errorf("the call: %v", err)
		}
		if err := tx.Commit(t.Context()); err != nil {
			t.Error(err)
		}
		p.want(t, "k")
	})
}
