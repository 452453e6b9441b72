package pgwire

import (
	"context"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgconn"
	"github.com/jackc/pgx/v5/pgxpool"
)

// Querier is a pool, a connection or a transaction.
type Querier interface {
	Query(ctx context.Context, sql string, args ...any) (pgx.Rows, error)
	QueryRow(ctx context.Context, sql string, args ...any) pgx.Row
	SendBatch(ctx context.Context, b *pgx.Batch) pgx.BatchResults
}

// Execer is a Querier with statements that return no rows.
type Execer interface {
	Querier
	Exec(ctx context.Context, sql string, args ...any) (pgconn.CommandTag, error)
}

// DatabaseOf takes a *pgstore.Store. Package pgstore sets it when it is initialised, so that
// the Store has no method that only other packages of this module can use.
var DatabaseOf func(st any) *Database

// Database is how another package reaches the tables of a store.
type Database struct {
	App         *pgxpool.Pool // the application's connections
	Own         *pgxpool.Pool // the store's own; handlers cannot use them up
	Schema      string        // quoted
	Clock       string        // the SQL expression of the store's clock, in microseconds
	LockTimeout time.Duration
	MaxIdleTx   time.Duration
	// StoreTimeout limits each request; see Limited.
	StoreTimeout time.Duration
	Closed       func() bool // the store is closed

	Commits      *CommitWatch                    // of the connections that the store opens
	Confirm      func(ctx context.Context) error // see pgstore's (*Store).confirm
	SeesWarnings bool                            // Commits sees the warnings of App too
}
