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

// The statements of a batch.
func TestRunBatch_ServerFreezes_CallEnds(t *testing.T) {
	t.Parallel()
	down := errors.New("down")
	for name, text := range map[string]string{
		"at BEGIN": "begin isolation", "at the savepoint before a swap": "SAVEPOINT semel_swap", "at the settlement of a later attempt": "SET state = $4", "at the rollback to a savepoint": "ROLLBACK TO semel_handler",
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

// A call has failed in the first round, so that the second call with its key looks the key
// up by itself.
func TestRunBatch_ServerFreezesAtLookupOfOneKey_CallEnds(t *testing.T) {
	t.Parallel()
	p, cut, _ := frozenShop(t)
	endsInTime(t, func(ctx context.Context) error {
		return p.a.RunBatch(ctx, []semel.Call{call("k"), call("k")}, func(ctx context.Context, newCalls []*PendingCall) error {
			newCalls[0].Err = semel.NoEffect(errors.New("nothing done"))
			cut.At("pg_try_advisory_xact_lock($2::integer, $3::integer)")
			return nil
		})[1].Err
	})
	if cut.Cuts.Load() == 0 {
		t.Error("nothing froze, so the test shows nothing")
	}
}

// A key is in two batches, so that the second one looks it up when the first has ended.
func TestPrefetch_ServerFreezesAtDeferredLookup_CallEnds(t *testing.T) {
	t.Parallel()
	p, cut, _ := frozenShop(t)
	w, q := newWorker(p), p.a.Prefetcher()
	calls := [][]semel.Call{poll("a", "b"), poll("b", "c")}
	first, second := q.Prefetch(t.Context(), calls[0]), q.Prefetch(t.Context(), calls[1])
	if !first.waitPrefetched() || !second.waitPrefetched() {
		t.Fatal("a batch was not prefetched: this test shows nothing")
	}
	wantDone(t, first.Run(t.Context(), w.rows(calls[0])), false, false)
	cut.At("force_generic_plan")
	endsInTime(t, func(ctx context.Context) error { return second.Run(ctx, w.rows(calls[1]))[0].Err })
	if cut.Cuts.Load() == 0 {
		t.Error("nothing froze, so the test shows nothing")
	}
}
