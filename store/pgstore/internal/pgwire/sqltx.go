package pgwire

import (
	"context"
	"database/sql"
	"database/sql/driver"
	"errors"
	"fmt"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/stdlib"
)

// ErrRolledBack says that the server answered COMMIT with a rollback.
var ErrRolledBack = errors.New("the server rolled the transaction back, because a statement had failed")

// SQLTx is a transaction of database/sql, and the driver's connection below it.
type SQLTx struct {
	Tx     *sql.Tx
	Driver *pgx.Conn
	Ended  bool // a handler has ended the transaction by a statement
	conn   *sql.Conn
	cancel context.CancelFunc // of the transaction's context
}

// BeginSQL begins a transaction. Its context does not end with ctx, because
// database/sql would then roll back at any moment, between two statements of the
// store.
func BeginSQL(ctx context.Context, db *sql.DB) (t *SQLTx, err error) {
	for range 3 { // as database/sql does by itself, except for a Conn
		if t, err = tryBeginSQL(ctx, db); !errors.Is(err, driver.ErrBadConn) {
			break
		}
	}
	return t, err
}

func tryBeginSQL(ctx context.Context, db *sql.DB) (*SQLTx, error) {
	conn, err := db.Conn(ctx)
	if err != nil {
		return nil, err
	}
	t := &SQLTx{conn: conn}
	err = conn.Raw(func(below any) error {
		c, ok := below.(*stdlib.Conn)
		if !ok {
			return fmt.Errorf("DoSQL: the driver's connection is a %T; open the database with the driver \"pgx\"", below)
		}
		t.Driver = c.Conn()
		return nil
	})
	if err == nil {
		var lasting context.Context
		lasting, t.cancel = context.WithCancel(context.WithoutCancel(ctx))
		stop := context.AfterFunc(ctx, t.cancel)
		if t.Tx, err = conn.BeginTx(lasting, &sql.TxOptions{Isolation: sql.LevelReadCommitted}); !stop() && err == nil {
			err = ctx.Err()
		}
	}
	if err != nil {
		t.End(5 * time.Second)
		return nil, err
	}
	return t, nil
}

// Commit commits. If ctx ends first, the connection is closed, and the outcome is not
// known.
func (t *SQLTx) Commit(ctx context.Context) error {
	stop := context.AfterFunc(ctx, t.cancel)
	defer stop()
	err := t.Tx.Commit()
	if errors.Is(err, pgx.ErrTxCommitRollback) {
		return fmt.Errorf("%w: %w", ErrRolledBack, err)
	}
	return err
}

// End rolls back unless the transaction has committed, and gives the connection back.
// The rollback may take until limit.
func (t *SQLTx) End(limit time.Duration) {
	if t.Tx != nil {
		late := time.AfterFunc(limit, t.cancel) // closes the connection
		_ = t.Tx.Rollback()
		late.Stop()
	}
	if t.Driver != nil && !t.Driver.IsClosed() && t.Driver.PgConn().TxStatus() != 'I' {
		ctx, cancel := context.WithTimeout(context.Background(), limit)
		if _, err := t.Driver.Exec(ctx, "ROLLBACK"); err != nil {
			_ = t.Driver.Close(ctx)
		}
		cancel()
	}
	if t.cancel != nil {
		t.cancel()
	}
	_ = t.conn.Close()
}
