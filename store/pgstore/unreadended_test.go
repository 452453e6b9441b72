package pgstore

import (
	"context"
	"database/sql"
	"errors"
	"testing"

	"github.com/jackc/pgx/v5"

	"github.com/semel-go/semel"
	"github.com/semel-go/semel/store"
)

// commitInRows commits with a connection that it got while rows were open, so that the id of the
// transaction is not known, and leaves the rows of another query open.
func (p *shop) commitInRows(key string) func(context.Context, *semel.Execution, pgx.Tx) error {
	return func(ctx context.Context, _ *semel.Execution, tx pgx.Tx) error {
		if _, err := tx.Exec(ctx, "INSERT INTO "+p.table+" VALUES ($1)", key); err != nil {
			return err
		}
		rows, err := tx.Query(ctx, "SELECT 1")
		if err != nil {
			return err
		}
		conn := tx.Conn()
		rows.Close()
		if _, err := conn.Exec(ctx, "COMMIT"); err != nil {
			return err
		}
		conn.QueryRow(ctx, "SELECT 1")
		return nil
	}
}

// Rows that are left open do not hide that the handler has committed, neither for a batch nor
// for the handler around a joined call, whose error it may ignore.
func TestAtomic_CommittedInRowsAndRowsLeftOpen_Parked(t *testing.T) {
	t.Parallel()
	p := newSQLShop(t, nil)
	for key, run := range map[string]func(key string) error{
		"Once": func(key string) error { return Once(t.Context(), p.a, call(key), p.commitInRows(key)) },
		"batch": func(key string) error {
			return p.a.RunBatch(t.Context(), poll(key), func(ctx context.Context, newCalls []*PendingCall) error {
				tx, _ := TxFrom(ctx)
				return p.commitInRows(key)(ctx, nil, tx)
			})[0].Err
		},
		"joined": func(key string) error {
			return Once(t.Context(), p.a, call(key), func(ctx context.Context, _ *semel.Execution, _ pgx.Tx) error {
				_ = Once(ctx, p.a, call(key+" inner"), p.commitInRows(key))
				return nil
			})
		},
		"joined in a batch": func(key string) error {
			return p.a.RunBatch(t.Context(), poll(key), func(ctx context.Context, _ []*PendingCall) error {
				return Once(ctx, p.a, call(key+" inner"), p.commitInRows(key))
			})[0].Err
		},
		"joined by DoSQL": func(key string) error {
			_, err := DoSQL(t.Context(), p.a, p.db, call(key), func(ctx context.Context, x *semel.Execution, _ *sql.Tx) (string, error) {
				_, _ = DoSQL(ctx, p.a, p.db, call(key+" inner"), func(ctx context.Context, x *semel.Execution, tx *sql.Tx) (string, error) {
					if _, err := p.paySQL(key, nil)(ctx, x, tx); err != nil {
						return "", err
					}
					if _, err := tx.ExecContext(ctx, "COMMIT"); err != nil {
						return "", err
					}
					_, err := tx.QueryContext(ctx, "SELECT 1")
					return "", err
				})
				return "", nil
			})
			return err
		},
	} {
		if err := run(key); !errors.Is(err, semel.ErrInDoubt) {
			t.Errorf("%s: got %v, want ErrInDoubt", key, err)
		}
		if r, err := p.record(t, key); err != nil || r.State != store.Unknown {
			t.Errorf("%s: the record is %v, %v", key, r.State, err)
		}
	}
}
