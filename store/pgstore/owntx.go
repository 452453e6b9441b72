package pgstore

import (
	"context"
	"database/sql"
	"database/sql/driver"
	"errors"
	"fmt"
	"sync/atomic"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"
	"github.com/jackc/pgx/v5/stdlib"

	"github.com/semel-go/semel"
	"github.com/semel-go/semel/store"
	"github.com/semel-go/semel/store/pgstore/internal/pgwire"
	"github.com/semel-go/semel/store/pgstore/internal/table"
)

// ownTx is the transaction of one try of Atomic.Run. It takes a connection with
// its first claim, unless a replay lookup answers that. BEGIN is sent together
// with the claim, and COMMIT together with the settlement.
type ownTx struct {
	storeTx
	duplicates *duplicateRate
	sqlDB      *sql.DB        // of DoSQL; nil: use the application's pool
	conn       *pgxpool.Conn  // of the application's pool
	sqlTx      *sqlTx         // of sqlDB
	proposal   store.Proposal // the argument of Claim; claimed points to it
	finished   atomic.Bool    // the handler has returned, or the transaction has ended
}

func (a *Atomic) newOwnTx() *ownTx {
	t := &ownTx{duplicates: &a.duplicates}
	t.store, t.deferInsert, t.ownsTx, t.idleTimeout = a.store, true, true, &a.store.idleTimeout
	return t
}

// connect takes a connection from the application's pool, and sends nothing. With
// database/sql it begins the transaction.
func (t *ownTx) connect(ctx context.Context) (err error) {
	if t.store.closed.Load() {
		return ErrClosed
	}
	if t.sqlDB != nil {
		if t.sqlTx, err = beginSQL(ctx, t.sqlDB); err != nil {
			return err
		}
		t.init(t.store, t.sqlTx.driverConn, true)
		return nil
	}
	if t.conn, err = t.store.appPool.Acquire(ctx); err != nil {
		return err
	}
	t.init(t.store, t.conn.Conn(), true)
	t.pipeline.Begin = true
	return nil
}

// Claim implements store.Tx.
func (t *ownTx) Claim(ctx context.Context, p store.Proposal) (f store.Found, err error) {
	id := table.ID(p.Key)
	if t.pipeline.DB == nil {
		if t.duplicates.high() {
			if f, ok := t.store.lookUpReplay(ctx, id, p.Key); ok {
				t.lastID = id
				t.duplicates.count(true)
				return f, nil
			}
		}
		if err := t.connect(ctx); err != nil {
			return f, pgwire.Explain("begin", err)
		}
	}
	t.proposal = p
	f, err = t.claimID(ctx, id, &t.proposal)
	if err == nil && (f.Won || replayable(&f)) {
		t.duplicates.count(!f.Won)
	}
	return f, err
}

// handlerContext is ctx with the transaction as a handler may use it.
func (t *ownTx) handlerContext(ctx context.Context, tx pgx.Tx) context.Context {
	if t.sqlTx != nil {
		return t.store.withTx(ctx, &txIn{sqlTx: t.sqlTx, finished: &t.finished})
	}
	return t.store.withTx(ctx, &txIn{tx: &handlerTx{Tx: tx, finished: &t.finished}, finished: &t.finished})
}

// errRolledBack: the server answered COMMIT with a rollback.
var errRolledBack = errors.New("the server rolled the transaction back, because a statement had failed")

// commit sends the queued statements, and COMMIT.
func (t *ownTx) commit(ctx context.Context) error {
	t.finished.Store(true)
	if t.sqlTx != nil {
		if err := t.pipeline.Flush(ctx); err != nil {
			return err
		}
		return t.sqlTx.commit(ctx)
	}
	t.pipeline.Push(commitStatement, nil, func(res pgx.BatchResults) error {
		tag, err := res.Exec()
		if err == nil && tag.String() != "COMMIT" {
			err = fmt.Errorf("%w (%s)", errRolledBack, tag)
		}
		return err
	})
	return t.pipeline.Flush(ctx)
}

// end rolls back unless the transaction has committed, and gives the connection
// back. It may be called again.
func (t *ownTx) end() {
	t.finished.Store(true)
	if t.sqlTx != nil {
		t.sqlTx.end()
		t.sqlTx = nil
	}
	if t.conn == nil {
		return
	}
	c := t.conn.Conn()
	if !c.IsClosed() && c.PgConn().TxStatus() != 'I' {
		ctx, cancel := context.WithTimeout(context.Background(), 5*time.Second)
		defer cancel()
		_, _ = c.Exec(ctx, "ROLLBACK") // if it fails, the pool closes the connection
	}
	t.conn.Release()
	t.conn = nil
}

// DoSQL is [Do] for applications with database/sql: fn gets a transaction that DoSQL
// begins on db, and commits together with the record. The driver of db must be pgx
// (package stdlib), and its database must be the store's database. Retries, replays, kept
// failures, panics and commits without an answer are as with Do. The differences:
//
//   - An *sql.Tx cannot refuse Commit and Rollback. Fn must not call them: its writes
//     would be committed without a record. DoSQL then returns an error.
//   - Fn must close its sql.Rows before it returns.
//   - BEGIN and COMMIT take a round trip each: four instead of two besides fn's own.
//   - Inside fn, with its context, DoSQL, semel.Do and semel.Once join the
//     transaction by a savepoint; Do and [TxFrom] have no pgx.Tx there.
func DoSQL[T any](ctx context.Context, a *Atomic, db *sql.DB, call semel.Call, fn func(ctx context.Context, x *semel.Execution, tx *sql.Tx) (T, error)) (T, error) {
	return semel.Do(ctx, sqlRunner{a, db}, call, func(ctx context.Context, x *semel.Execution) (T, error) {
		in, _ := ctx.Value(txKey{}).(*txIn)
		return fn(ctx, x, in.sqlTx.tx)
	})
}

// sqlRunner runs calls in transactions of db.
type sqlRunner struct {
	atomic *Atomic
	db     *sql.DB
}

// Run implements semel.Runner.
func (r sqlRunner) Run(ctx context.Context, call semel.Call, fn semel.Handler) (semel.Result, error) {
	in, inside := r.atomic.store.inside(ctx)
	switch {
	case r.db == nil:
		return semel.Result{}, errors.New("pgstore: DoSQL: the sql.DB is nil")
	case inside && in.sqlTx == nil:
		return semel.Result{}, errors.New("pgstore: DoSQL inside a handler of Do: its transaction is a pgx.Tx; use Do there")
	}
	return r.atomic.run(ctx, call, fn, r.db)
}

// sqlTx is a transaction of database/sql, and the driver's connection below it.
type sqlTx struct {
	conn       *sql.Conn
	tx         *sql.Tx
	driverConn *pgx.Conn
	cancel     context.CancelFunc // of the transaction's context
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
		t.driverConn = c.Conn()
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

// commit commits. If ctx ends first, the connection is closed, and the outcome is not
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
	if t.driverConn != nil && !t.driverConn.IsClosed() && t.driverConn.PgConn().TxStatus() != 'I' {
		ctx, cancel := context.WithTimeout(context.Background(), 5*time.Second)
		if _, err := t.driverConn.Exec(ctx, "ROLLBACK"); err != nil {
			_ = t.driverConn.Close(ctx)
		}
		cancel()
	}
	if t.cancel != nil {
		t.cancel()
	}
	_ = t.conn.Close()
}
