package pgstore

import (
	"context"
	"database/sql"
	"database/sql/driver"
	"errors"
	"fmt"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/stdlib"

	"github.com/semel-go/semel"
)

// DoSQL is [Do] for applications with database/sql: fn gets a transaction that DoSQL
// begins on db, and commits together with the record. The driver of db must be pgx
// (package stdlib), and its database that of the store. Retries, replays, kept
// failures, panics and commits without an answer are as with Do. The differences:
//
//   - An *sql.Tx cannot refuse Commit and Rollback. Fn must not call them: what it
//     commits stays although there is no record. DoSQL then returns an error.
//   - Fn must close its sql.Rows before it returns.
//   - BEGIN and COMMIT take a round trip each: four instead of two besides fn's own.
//   - Inside fn, with its context, DoSQL, semel.Do and semel.Once join the
//     transaction by a savepoint; Do and [TxFrom] have no pgx.Tx there.
func DoSQL[T any](ctx context.Context, a *Atomic, db *sql.DB, call semel.Call, fn func(ctx context.Context, x *semel.Execution, tx *sql.Tx) (T, error)) (T, error) {
	return semel.Do(ctx, sqlRunner{a, db}, call, func(ctx context.Context, x *semel.Execution) (T, error) {
		in, _ := ctx.Value(txKey{}).(*txIn)
		return fn(ctx, x, in.sql.tx)
	})
}

// sqlRunner runs calls in transactions of db.
type sqlRunner struct {
	a  *Atomic
	db *sql.DB
}

// Run implements semel.Runner.
func (r sqlRunner) Run(ctx context.Context, call semel.Call, fn semel.Handler) (semel.Result, error) {
	in, inside := r.a.s.inside(ctx)
	switch {
	case r.db == nil:
		return semel.Result{}, errors.New("pgstore: DoSQL: the sql.DB is nil")
	case inside && in.sql == nil:
		return semel.Result{}, errors.New("pgstore: DoSQL inside a handler of Do: its transaction is a pgx.Tx; use Do there")
	}
	return r.a.run(ctx, call, fn, r.db)
}

// sqlTx is a transaction of database/sql, and the driver's connection below it.
type sqlTx struct {
	conn   *sql.Conn
	tx     *sql.Tx
	driver *pgx.Conn
	cancel context.CancelFunc // of the transaction's context
}

// beginSQL begins a transaction. Its context does not end with ctx, because
// database/sql would then roll back at any moment, between two statements of the
// store.
func beginSQL(ctx context.Context, db *sql.DB) (t *sqlTx, err error) {
	for range 3 { // as database/sql does by itself, except for a Conn
		if t, err = tryBeginSQL(ctx, db); !errors.Is(err, driver.ErrBadConn) {
			break
		}
	}
	return t, err
}

func tryBeginSQL(ctx context.Context, db *sql.DB) (*sqlTx, error) {
	conn, err := db.Conn(ctx)
	if err != nil {
		return nil, err
	}
	t := &sqlTx{conn: conn}
	err = conn.Raw(func(below any) error {
		c, ok := below.(*stdlib.Conn)
		if !ok {
			return fmt.Errorf("DoSQL: the driver's connection is a %T; open the database with the driver \"pgx\"", below)
		}
		t.driver = c.Conn()
		return nil
	})
	if err == nil {
		var lasting context.Context
		lasting, t.cancel = context.WithCancel(context.WithoutCancel(ctx))
		stop := context.AfterFunc(ctx, t.cancel)
		if t.tx, err = conn.BeginTx(lasting, &sql.TxOptions{Isolation: sql.LevelReadCommitted}); !stop() && err == nil {
			err = ctx.Err()
		}
	}
	if err != nil {
		t.end()
		return nil, err
	}
	return t, nil
}

var errSQLTxEnded = errors.New("pgstore: the handler of DoSQL has ended its transaction: it must neither commit nor roll back")

// commit commits. If ctx ends first, the connection is closed, and the outcome not
// known.
func (t *sqlTx) commit(ctx context.Context) error {
	stop := context.AfterFunc(ctx, t.cancel)
	defer stop()
	err := t.tx.Commit()
	if errors.Is(err, pgx.ErrTxCommitRollback) {
		return fmt.Errorf("%w: %w", errRolledBack, err)
	}
	return err
}

// end rolls back unless the transaction has committed, and gives the connection back.
func (t *sqlTx) end() {
	if t.tx != nil {
		_ = t.tx.Rollback()
	}
	if t.driver != nil && !t.driver.IsClosed() && t.driver.PgConn().TxStatus() != 'I' {
		ctx, cancel := context.WithTimeout(context.Background(), 5*time.Second)
		if _, err := t.driver.Exec(ctx, "ROLLBACK"); err != nil {
			_ = t.driver.Close(ctx)
		}
		cancel()
	}
	if t.cancel != nil {
		t.cancel()
	}
	_ = t.conn.Close()
}
