package pgstore

import (
	"context"
	"errors"
	"strconv"
	"sync/atomic"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgconn"
)

// handlerTx is the transaction of Atomic.Run as its handler sees it: it does
// all that a transaction does, but end, and nothing once that has ended and
// its connection may be another's.
type handlerTx struct {
	pgx.Tx
	of     *lent
	closed bool // a savepoint, by the handler
}

// ended reports whether it is of no use any more.
func (t *handlerTx) ended() bool { return t.closed || t.of.over.Load() }

// lent is what the handler of one run has of it: its context, in which the
// transaction is. A handler may leave goroutines behind, so it is never used
// again.
type lent struct {
	context.Context //nolint:containedctx // it is one
	in              txIn
	runs            runs
	tx              handlerTx
	over            atomic.Bool
	savepoints      int // of the handler's, ever
	statement       statementContext
}

// Value implements context.Context.
func (l *lent) Value(key any) any {
	switch key {
	case txKey{}:
		return &l.in
	case runsKey{}:
		return &l.runs
	}
	return l.Context.Value(key)
}

// statementContext is the handler's context as the driver gets it. That of the
// handler can end by itself, so the driver would watch it for each statement; but
// until the handler has returned it ends only when that does which was given to
// Run, which mostly costs less to watch, and later the driver is not reached.
type statementContext struct {
	context.Context //nolint:containedctx // it is one: that of Run
	of              *lent
}

// Value implements context.Context.
func (c *statementContext) Value(key any) any { return c.of.Value(key) }

// within is ctx for a statement.
func (t *handlerTx) within(ctx context.Context) context.Context {
	if ctx == context.Context(t.of) {
		return &t.of.statement
	}
	return ctx
}

var errTxEnded = errors.New("pgstore: the transaction is Atomic's to end, by what the handler returns")

// Commit implements pgx.Tx by an error.
func (t *handlerTx) Commit(context.Context) error { return t.refuse() }

// Rollback implements pgx.Tx by an error.
func (t *handlerTx) Rollback(context.Context) error { return t.refuse() }

func (t *handlerTx) refuse() error {
	if t.ended() {
		return pgx.ErrTxClosed
	}
	return errTxEnded
}

// Begin implements pgx.Tx by a savepoint. Its number is that in the transaction:
// pgx would count on, for all that there are on the connection, and a server that
// counts statements by their text (pg_stat_statements) would see new ones always.
func (t *handlerTx) Begin(ctx context.Context) (pgx.Tx, error) {
	if t.ended() {
		return nil, pgx.ErrTxClosed
	}
	t.of.savepoints++
	name := "sp_" + strconv.Itoa(t.of.savepoints)
	if _, err := t.Tx.Exec(t.within(ctx), "SAVEPOINT "+name); err != nil {
		return nil, err
	}
	return &savepointTx{handlerTx{Tx: t.Tx, of: t.of}, name}, nil
}

// savepointTx is a savepoint of the handler's, which the handler ends.
type savepointTx struct {
	handlerTx
	name string
}

// Commit implements pgx.Tx.
func (t *savepointTx) Commit(ctx context.Context) error { return t.end(ctx, "RELEASE SAVEPOINT ") }

// Rollback implements pgx.Tx.
func (t *savepointTx) Rollback(ctx context.Context) error {
	return t.end(ctx, "ROLLBACK TO SAVEPOINT ")
}

func (t *savepointTx) end(ctx context.Context, how string) error {
	if t.ended() {
		return pgx.ErrTxClosed
	}
	_, err := t.Tx.Exec(t.within(ctx), how+t.name)
	t.closed = true
	return err
}

// Prepare implements pgx.Tx.
func (t *handlerTx) Prepare(ctx context.Context, name, sql string) (*pgconn.StatementDescription, error) {
	if t.ended() {
		return nil, pgx.ErrTxClosed
	}
	return t.Tx.Prepare(t.within(ctx), name, sql)
}

// LargeObjects implements pgx.Tx. What it returns must not outlive the handler.
func (t *handlerTx) LargeObjects() pgx.LargeObjects {
	if t.ended() {
		b := &pgx.Batch{}
		b.BeginTx(pgx.TxOptions{})
		return pgx.FailedBatchResults(b, pgx.ErrTxClosed).Tx().LargeObjects() // of a transaction that is closed
	}
	return t.Tx.LargeObjects()
}

// Exec implements pgx.Tx.
func (t *handlerTx) Exec(ctx context.Context, sql string, args ...any) (pgconn.CommandTag, error) {
	if t.ended() {
		return pgconn.CommandTag{}, pgx.ErrTxClosed
	}
	return t.Tx.Exec(t.within(ctx), sql, args...)
}

// Query implements pgx.Tx.
func (t *handlerTx) Query(ctx context.Context, sql string, args ...any) (pgx.Rows, error) {
	if t.ended() {
		return closedRows{err: pgx.ErrTxClosed}, pgx.ErrTxClosed
	}
	return t.Tx.Query(t.within(ctx), sql, args...)
}

// QueryRow implements pgx.Tx.
func (t *handlerTx) QueryRow(ctx context.Context, sql string, args ...any) pgx.Row {
	if t.ended() {
		return closedRows{err: pgx.ErrTxClosed}
	}
	return t.Tx.QueryRow(t.within(ctx), sql, args...)
}

// SendBatch implements pgx.Tx.
func (t *handlerTx) SendBatch(ctx context.Context, b *pgx.Batch) pgx.BatchResults {
	if t.ended() {
		return pgx.FailedBatchResults(b, pgx.ErrTxClosed)
	}
	return t.Tx.SendBatch(t.within(ctx), b)
}

// CopyFrom implements pgx.Tx.
func (t *handlerTx) CopyFrom(ctx context.Context, table pgx.Identifier, columns []string, rows pgx.CopyFromSource) (int64, error) {
	if t.ended() {
		return 0, pgx.ErrTxClosed
	}
	return t.Tx.CopyFrom(t.within(ctx), table, columns, rows)
}

// closedRows are those of a query that was not sent.
type closedRows struct {
	pgx.Rows
	err error
}

func (r closedRows) Close()            {}
func (r closedRows) Err() error        { return r.err }
func (r closedRows) Next() bool        { return false }
func (r closedRows) Scan(...any) error { return r.err }
