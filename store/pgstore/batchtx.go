package pgstore

import (
	"context"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgconn"
)

// touchedTx is the transaction of a batch as its handler uses it. Before the
// first use a savepoint is set, if there is to be one: a handler that fails
// without any use needs none, and has nothing to be undone.
type touchedTx struct {
	pgx.Tx
	y *batchTry
}

// Begin implements pgx.Tx.
func (t *touchedTx) Begin(ctx context.Context) (pgx.Tx, error) {
	if err := t.y.touch(ctx); err != nil {
		return nil, err
	}
	return t.Tx.Begin(ctx)
}

// Exec implements pgx.Tx.
func (t *touchedTx) Exec(ctx context.Context, sql string, args ...any) (pgconn.CommandTag, error) {
	if err := t.y.touch(ctx); err != nil {
		return pgconn.CommandTag{}, err
	}
	return t.Tx.Exec(ctx, sql, args...)
}

// Query implements pgx.Tx.
func (t *touchedTx) Query(ctx context.Context, sql string, args ...any) (pgx.Rows, error) {
	if err := t.y.touch(ctx); err != nil {
		return failedRows{err: err}, err
	}
	return t.Tx.Query(ctx, sql, args...)
}

// QueryRow implements pgx.Tx.
func (t *touchedTx) QueryRow(ctx context.Context, sql string, args ...any) pgx.Row {
	if err := t.y.touch(ctx); err != nil {
		return failedRows{err: err}
	}
	return t.Tx.QueryRow(ctx, sql, args...)
}

// SendBatch implements pgx.Tx.
func (t *touchedTx) SendBatch(ctx context.Context, b *pgx.Batch) pgx.BatchResults {
	if err := t.y.touch(ctx); err != nil {
		return pgx.FailedBatchResults(b, err)
	}
	return t.Tx.SendBatch(ctx, b)
}

// CopyFrom implements pgx.Tx.
func (t *touchedTx) CopyFrom(ctx context.Context, table pgx.Identifier, columns []string, rows pgx.CopyFromSource) (int64, error) {
	if err := t.y.touch(ctx); err != nil {
		return 0, err
	}
	return t.Tx.CopyFrom(ctx, table, columns, rows)
}

// Prepare implements pgx.Tx.
func (t *touchedTx) Prepare(ctx context.Context, name, sql string) (*pgconn.StatementDescription, error) {
	if err := t.y.touch(ctx); err != nil {
		return nil, err
	}
	return t.Tx.Prepare(ctx, name, sql)
}

// LargeObjects implements pgx.Tx.
func (t *touchedTx) LargeObjects() pgx.LargeObjects {
	t.untracked()
	return t.Tx.LargeObjects()
}

// Conn implements pgx.Tx.
func (t *touchedTx) Conn() *pgx.Conn {
	t.untracked()
	return t.Tx.Conn()
}

// untracked is touch for what is used later, and without our knowledge. If it
// fails, so does that.
func (t *touchedTx) untracked() { _ = t.y.touch(context.Background()) }
