package pgstore

import (
	"context"
	"database/sql"
	"errors"
	"testing"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/stdlib"

	"github.com/semel-go/semel"
)

// The statements of a step are the store's, too. The lease of the call is renewed on other
// connections, so that its end does not end the wait.
func TestAtomic_ServerFreezesInStep_CallEnds(t *testing.T) {
	t.Parallel()
	for name, text := range map[string]string{
		"when the steps are read": "LEFT JOIN", "when the step is recorded": "semel_step (record",
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			p, cut, _ := frozenShop(t)
			g := leased(t, p.s, nil)
			endsInTime(t, func(ctx context.Context) error {
				return semel.Once(ctx, g, call("k"), func(ctx context.Context, x *semel.Execution) error {
					cut.At(text)
					return Once(ctx, p.a, x.Step("pay"), func(context.Context, *semel.Execution, pgx.Tx) error { return nil })
				})
			})
			if cut.Cuts.Load() == 0 {
				t.Error("nothing froze, so the test shows nothing")
			}
		})
	}
}

func TestDoSQL_ServerFreezesAtBeginOfStep_CallEnds(t *testing.T) {
	t.Parallel()
	p, cut, url := frozenShop(t)
	cfg, err := pgx.ParseConfig(url)
	if err != nil {
		t.Fatal(err)
	}
	db := stdlib.OpenDB(*cfg)
	g := leased(t, p.s, nil)
	endsInTime(t, func(ctx context.Context) error {
		return semel.Once(ctx, g, call("k"), func(ctx context.Context, x *semel.Execution) error {
			cut.At("begin")
			_, err := DoSQL(ctx, p.a, db, x.Step("pay"), func(context.Context, *semel.Execution, *sql.Tx) (int, error) { return 1, nil })
			return err
		})
	})
	if cut.Cuts.Load() == 0 {
		t.Error("nothing froze, so the test shows nothing")
	}
}

// The statements of a batch after the lookup of its keys.
func TestRunBatch_ServerFreezes_CallEnds(t *testing.T) {
	t.Parallel()
	down := errors.New("down")
	for name, text := range map[string]string{
		"at the savepoint before a swap": "SAVEPOINT semel_swap", "at the settlement of a later attempt": "SET state = $4", "at the rollback to a savepoint": "ROLLBACK TO semel_handler",
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			p, cut, _ := frozenShop(t)
			if err := Once(t.Context(), p.a, call("k"), func(context.Context, *semel.Execution, pgx.Tx) error { return down }); !errors.Is(err, down) {
				t.Fatal(err)
			}
			cut.At(text)
			endsInTime(t, func(ctx context.Context) error {
				return p.a.RunBatch(ctx, []semel.Call{call("k")}, func(ctx context.Context, newCalls []*PendingCall) error {
					tx, _ := TxFrom(ctx)
					if _, err := tx.Exec(ctx, "INSERT INTO "+p.table+" VALUES ('k')"); err != nil {
						return err
					}
					if text == "ROLLBACK TO semel_handler" {
						return down
					}
					return nil
				})[0].Err
			})
			if cut.Cuts.Load() == 0 {
				t.Error("nothing froze, so the test shows nothing")
			}
		})
	}
}
