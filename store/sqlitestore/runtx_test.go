package sqlitestore

import (
	"context"
	"database/sql"
	"errors"
	"strings"
	"testing"
	"time"

	sqlite3 "modernc.org/sqlite/lib"

	"github.com/semel-go/semel"
)

// ways in which a handler can lose its transaction and still have a *sql.Tx
// that takes statements: SQLite then commits each of them by itself.
var ways = map[string]func(ctx context.Context, tx *sql.Tx) error{
	"a write whose context ends": func(ctx context.Context, tx *sql.Tx) error {
		ctx, cancel := context.WithTimeout(ctx, 20*time.Millisecond)
		defer cancel()
		_, err := tx.ExecContext(ctx, `INSERT INTO payment
			WITH RECURSIVE n(x) AS (SELECT 1 UNION ALL SELECT x + 1 FROM n) SELECT x FROM n WHERE x < 0`)
		return err
	},
	"a write that does not fit": func(ctx context.Context, tx *sql.Tx) error {
		_, err := tx.ExecContext(ctx, "INSERT INTO payment VALUES (?)", strings.Repeat("x", 1<<20))
		return err
	},
	"a conflict that rolls back": func(ctx context.Context, tx *sql.Tx) error {
		_, err := tx.ExecContext(ctx, "INSERT OR ROLLBACK INTO semel_meta SELECT * FROM semel_meta")
		return err
	},
	"its own ROLLBACK": func(ctx context.Context, tx *sql.Tx) error {
		_, _ = tx.ExecContext(ctx, "ROLLBACK")
		return sql.ErrTxDone
	},
	"its own COMMIT": func(ctx context.Context, tx *sql.Tx) error {
		if _, err := tx.ExecContext(ctx, "INSERT INTO payment VALUES ('early')"); err != nil {
			return err
		}
		_, err := tx.ExecContext(ctx, "COMMIT")
		return err
	},
}

func TestAtomic_TransactionLost_LaterWritesAreNotCommitted(t *testing.T) {
	t.Parallel()
	for name, lose := range ways {
		t.Run(name, func(t *testing.T) {
			p := openShop(t, &Options{Pragmas: []string{"max_page_count = 100"}})
			err := Once(t.Context(), p.a, call("k"), func(ctx context.Context, x *semel.Execution, tx *sql.Tx) error {
				if err := lose(ctx, tx); err == nil {
					t.Error("nothing went wrong")
				}
				_, _ = pay("k", nil)(ctx, x, tx) // a handler that goes on all the same
				return nil
			})
			if err == nil {
				t.Error("a call without a record succeeded")
			}
			p.want(t)
			if _, err := Do(t.Context(), p.a, call("k"), pay("k", nil)); err != nil {
				t.Errorf("the next call: %v", err)
			}
			p.want(t, "k")
		})
	}
}

func TestInDoubt_OnlyDiskErrors(t *testing.T) {
	t.Parallel()
	for code, want := range map[int]bool{
		sqlite3.SQLITE_IOERR: true, sqlite3.SQLITE_IOERR_FSYNC: true, sqlite3.SQLITE_IOERR_WRITE: true,
		0: false, sqlite3.SQLITE_FULL: false, sqlite3.SQLITE_BUSY: false, sqlite3.SQLITE_CONSTRAINT_FOREIGNKEY: false, sqlite3.SQLITE_INTERRUPT: false,
	} {
		if inDoubt(code) != want {
			t.Errorf("code %d: in doubt %v", code, !want)
		}
	}
}

func TestAtomic_ContextEndsBeforeCommit_IsErrCanceled(t *testing.T) {
	t.Parallel()
	p := openShop(t, nil)
	ctx, cancel := context.WithCancel(t.Context())
	_, err := Do(ctx, p.a, call("k"), func(ctx context.Context, x *semel.Execution, tx *sql.Tx) (string, error) {
		defer cancel()
		return pay("k", nil)(ctx, x, tx)
	})
	if !errors.Is(err, semel.ErrCanceled) {
		t.Errorf("got %v, want ErrCanceled", err)
	}
	p.want(t)
}
