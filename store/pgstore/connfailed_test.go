package pgstore

import (
	"context"
	"errors"
	"testing"

	"github.com/jackc/pgx/v5"

	"github.com/semel-go/semel"
	"github.com/semel-go/semel/store"
)

// failUnnamed are handlers that call Conn while the id of the transaction cannot be asked for,
// and in which a statement fails. None ends its transaction.
func failUnnamed(p *shop, t *testing.T) map[string]func(ctx context.Context, tx pgx.Tx) error {
	fail := func(ctx context.Context, tx pgx.Tx) error {
		_, err := tx.Exec(ctx, "SELECT 1/0")
		return err
	}
	return map[string]func(ctx context.Context, tx pgx.Tx) error{
		"Conn in rows": func(ctx context.Context, tx pgx.Tx) error {
			return errors.Join(useConnInRows(ctx, tx), fail(ctx, tx))
		},
		"Conn in rows, another error": func(ctx context.Context, tx pgx.Tx) error {
			_, _ = useConnInRows(ctx, tx), fail(ctx, tx)
			return errors.New("down")
		},
		"Conn in rows, nil": func(ctx context.Context, tx pgx.Tx) error {
			_, _ = useConnInRows(ctx, tx), fail(ctx, tx)
			return nil
		},
		"Conn, nil": func(ctx context.Context, tx pgx.Tx) error {
			_, _ = tx.Conn().TypeMap(), fail(ctx, tx)
			return nil
		},
		"Conn after the failure": func(ctx context.Context, tx pgx.Tx) error {
			err := fail(ctx, tx)
			_ = tx.Conn().TypeMap()
			return err
		},
		"a failed query left open": func(ctx context.Context, tx pgx.Tx) error {
			if err := useConnInRows(ctx, tx); err != nil {
				return err
			}
			rows, err := tx.Query(ctx, "SELECT 1 / (100 - i) FROM generate_series(1, 200) i")
			if err != nil {
				return err
			}
			rows.Next()
			pid := tx.Conn().PgConn().PID()
			waitFor(t, "the query has failed", func() bool {
				return ask[bool](t, p.s.ownPool, "SELECT state = 'idle in transaction (aborted)' FROM pg_stat_activity WHERE pid = $1", pid)
			})
			return nil
		},
		"panic": func(ctx context.Context, tx pgx.Tx) error {
			_, _ = useConnInRows(ctx, tx), fail(ctx, tx)
			panic("after a failed statement")
		},
	}
}

// A statement that fails releases the lock of the key. That is no proof that the handler has
// ended its transaction: the call is a failed attempt.
func TestAtomic_StatementFailsAfterConnUnnamed_CountsAttempt(t *testing.T) {
	t.Parallel()
	p := newShop(t, openNew(t, nil), nil)
	for name, handler := range failUnnamed(p, t) {
		check := func(key string, want store.State, err error) {
			t.Helper()
			r, recordErr := p.record(t, key)
			if errors.Is(err, semel.ErrInDoubt) || recordErr != nil || r.State != want || r.Attempt != 1 {
				t.Errorf("%s: the call: %v; the record is %v, attempt %d, %v; want %v, attempt 1", key, err, r.State, r.Attempt, recordErr, want)
			}
		}
		t.Run(name, func(t *testing.T) {
			var err error
			func() {
				defer func() { _ = recover() }()
				err = Once(t.Context(), p.a, call(name), func(ctx context.Context, _ *semel.Execution, tx pgx.Tx) error { return handler(ctx, tx) })
			}()
			check(name, store.Released, err)
		})
		if name == "panic" { // ends the whole batch
			continue
		}
		t.Run(name+", one call of a batch", func(t *testing.T) {
			bad := name + ", bad"
			keys := []string{name + ", a", name + ", b", bad, name + ", c"}
			ends := p.a.RunBatch(t.Context(), poll(keys...), func(ctx context.Context, newCalls []*PendingCall) error {
				tx, _ := TxFrom(ctx)
				for _, n := range newCalls {
					if n.Execution.Key() == bad {
						return handler(ctx, tx)
					}
				}
				return nil
			})
			for i, key := range keys {
				want := store.Completed
				if key == bad {
					want = store.Released
				}
				check(key, want, ends[i].Err)
			}
		})
	}
}

// A batch has a savepoint before the first statement of a handler. If the handler commits and
// begins another transaction, the savepoint is gone.
func TestRunBatch_HandlerCommitsAndFailsInNextTransaction_Parked(t *testing.T) {
	t.Parallel()
	p := newShop(t, openNew(t, nil), nil)
	end := onConnInRows("COMMIT; BEGIN; SELECT 1/0")
	ends := p.a.RunBatch(t.Context(), []semel.Call{call("k")}, func(ctx context.Context, _ []*PendingCall) error {
		tx, _ := TxFrom(ctx)
		if _, err := tx.Exec(ctx, "INSERT INTO "+p.table+" VALUES ('k')"); err != nil {
			t.Error(err)
		}
		end(ctx, tx)
		return errors.New("down")
	})
	if !errors.Is(ends[0].Err, semel.ErrInDoubt) {
		t.Errorf("the call ended with %v, want ErrInDoubt", ends[0].Err)
	}
	if r, err := p.record(t, "k"); err != nil || r.State != store.Unknown {
		t.Errorf("the record is %v, %v; the handler has committed its effect", r.State, err)
	}
}
