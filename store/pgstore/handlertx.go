package pgstore

import (
	"context"
	"errors"
	"sync/atomic"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgconn"
)

// handlerTx is the transaction of Atomic as a handler sees it. The handler cannot
// end it. After the handler has returned, every method fails with pgx.ErrTxClosed,
// because the connection may belong to another run by then.
type handlerTx struct {
	pgx.Tx
	finished  *atomic.Bool // the handler has returned
	savepoint bool         // a savepoint, which the handler may end
}

var errTxEnded = errors.New("pgstore: the handler must not end the transaction: Atomic commits it if the handler returns nil, and rolls it back after an error")

// Commit implements pgx.Tx. It fails, except for a savepoint that the handler has set.
func (t *handlerTx) Commit(ctx context.Context) error { return t.end(ctx, t.Tx.Commit) }

// Rollback implements pgx.Tx. It fails, except for a savepoint that the handler has
// set.
func (t *handlerTx) Rollback(ctx context.Context) error { return t.end(ctx, t.Tx.Rollback) }

func (t *handlerTx) end(ctx context.Context, end func(context.Context) error) error {
	switch {
	case t.finished.Load():
		return pgx.ErrTxClosed
	case !t.savepoint:
		return errTxEnded
	}
	return end(ctx)
}

// Begin implements pgx.Tx by a savepoint.
func (t *handlerTx) Begin(ctx context.Context) (pgx.Tx, error) {
	if t.finished.Load() {
		return nil, pgx.ErrTxClosed
	}
	tx, err := t.Tx.Begin(ctx)
	if err != nil {
		return nil, err
	}
	return &handlerTx{Tx: tx, finished: t.finished, savepoint: true}, nil
}

// Prepare implements pgx.Tx.
func (t *handlerTx) Prepare(ctx context.Context, name, sql string) (*pgconn.StatementDescription, error) {
	if t.finished.Load() {
		return nil, pgx.ErrTxClosed
	}
	return t.Tx.Prepare(ctx, name, sql)
}

// LargeObjects implements pgx.Tx. Its result must not be used after the handler has returned.
func (t *handlerTx) LargeObjects() pgx.LargeObjects {
	if t.finished.Load() {
		b := &pgx.Batch{}
		b.BeginTx(pgx.TxOptions{})
		return pgx.FailedBatchResults(b, pgx.ErrTxClosed).Tx().LargeObjects() // LargeObjects of a closed transaction
	}
	return t.Tx.LargeObjects()
}

// Exec implements pgx.Tx.
func (t *handlerTx) Exec(ctx context.Context, sql string, args ...any) (pgconn.CommandTag, error) {
	if t.finished.Load() {
		return pgconn.CommandTag{}, pgx.ErrTxClosed
	}
	return t.Tx.Exec(ctx, sql, args...)
}

// Query implements pgx.Tx.
func (t *handlerTx) Query(ctx context.Context, sql string, args ...any) (pgx.Rows, error) {
	if t.finished.Load() {
		return failedRows{err: pgx.ErrTxClosed}, pgx.ErrTxClosed
	}
	return t.Tx.Query(ctx, sql, args...)
}

// QueryRow implements pgx.Tx.
func (t *handlerTx) QueryRow(ctx context.Context, sql string, args ...any) pgx.Row {
	if t.finished.Load() {
		return failedRows{err: pgx.ErrTxClosed}
	}
	return t.Tx.QueryRow(ctx, sql, args...)
}

// SendBatch implements pgx.Tx.
func (t *handlerTx) SendBatch(ctx context.Context, b *pgx.Batch) pgx.BatchResults {
	if t.finished.Load() {
		return pgx.FailedBatchResults(b, pgx.ErrTxClosed)
	}
	return t.Tx.SendBatch(ctx, b)
}

// CopyFrom implements pgx.Tx.
func (t *handlerTx) CopyFrom(ctx context.Context, table pgx.Identifier, columns []string, rows pgx.CopyFromSource) (int64, error) {
	if t.finished.Load() {
		return 0, pgx.ErrTxClosed
	}
	return t.Tx.CopyFrom(ctx, table, columns, rows)
}

// failedRows are the rows of a query that was not sent.
type failedRows struct {
	pgx.Rows
	err error
}

// Close implements pgx.Rows.
func (r failedRows) Close() {}

// Err implements pgx.Rows.
func (r failedRows) Err() error { return r.err }

// Next implements pgx.Rows.
func (r failedRows) Next() bool { return false }

// Scan implements pgx.Rows.
func (r failedRows) Scan(...any) error { return r.err }

// touchedTx is the transaction of a batch as its handler uses it. It sets the
// savepoint before the first use, if the batch uses savepoints. A handler that fails
// before any use has written nothing, and needs none.
type touchedTx struct {
	pgx.Tx
	batch *batchTry
}

// Begin implements pgx.Tx.
func (t *touchedTx) Begin(ctx context.Context) (pgx.Tx, error) {
	if err := t.batch.markUsed(ctx); err != nil {
		return nil, err
	}
	return t.Tx.Begin(ctx)
}

// Exec implements pgx.Tx.
func (t *touchedTx) Exec(ctx context.Context, sql string, args ...any) (pgconn.CommandTag, error) {
	if err := t.batch.markUsed(ctx); err != nil {
		return pgconn.CommandTag{}, err
	}
	return t.Tx.Exec(ctx, sql, args...)
}

// Query implements pgx.Tx.
func (t *touchedTx) Query(ctx context.Context, sql string, args ...any) (pgx.Rows, error) {
	if err := t.batch.markUsed(ctx); err != nil {
		return failedRows{err: err}, err
	}
	return t.Tx.Query(ctx, sql, args...)
}

// QueryRow implements pgx.Tx.
func (t *touchedTx) QueryRow(ctx context.Context, sql string, args ...any) pgx.Row {
	if err := t.batch.markUsed(ctx); err != nil {
		return failedRows{err: err}
	}
	return t.Tx.QueryRow(ctx, sql, args...)
}

// SendBatch implements pgx.Tx.
func (t *touchedTx) SendBatch(ctx context.Context, b *pgx.Batch) pgx.BatchResults {
	if err := t.batch.markUsed(ctx); err != nil {
		return pgx.FailedBatchResults(b, err)
	}
	return t.Tx.SendBatch(ctx, b)
}

// CopyFrom implements pgx.Tx.
func (t *touchedTx) CopyFrom(ctx context.Context, table pgx.Identifier, columns []string, rows pgx.CopyFromSource) (int64, error) {
	if err := t.batch.markUsed(ctx); err != nil {
		return 0, err
	}
	return t.Tx.CopyFrom(ctx, table, columns, rows)
}

// Prepare implements pgx.Tx.
func (t *touchedTx) Prepare(ctx context.Context, name, sql string) (*pgconn.StatementDescription, error) {
	if err := t.batch.markUsed(ctx); err != nil {
		return nil, err
	}
	return t.Tx.Prepare(ctx, name, sql)
}

// LargeObjects implements pgx.Tx.
func (t *touchedTx) LargeObjects() pgx.LargeObjects {
	t.markUsedUntracked()
	return t.Tx.LargeObjects()
}

// Conn implements pgx.Tx.
func (t *touchedTx) Conn() *pgx.Conn {
	t.markUsedUntracked()
	return t.Tx.Conn()
}

// markUsedUntracked is markUsed for LargeObjects and Conn, whose later statements are
// not seen here. If it fails, so do those statements.
func (t *touchedTx) markUsedUntracked() { _ = t.batch.markUsed(context.Background()) }
