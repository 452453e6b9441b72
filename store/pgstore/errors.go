package pgstore

import "github.com/semel-go/semel/store/pgstore/internal/pgwire"

// Errors that a caller can act upon. Find them with errors.Is; the driver's
// *pgconn.PgError is in the chain too.
var (
	// ErrBusy: another transaction held the row for longer than
	// Options.LockTimeout, or at all where the store does not wait (a renewal).
	// Nothing was changed. Call again, and keep transactions short.
	ErrBusy = pgwire.ErrBusy
	// ErrFull: the server has no room on its disk. Nothing was changed.
	ErrFull = pgwire.ErrFull
	// ErrSchema: the tables are missing, older or newer than this version of the
	// package needs. Migrate, or update the package.
	ErrSchema = pgwire.ErrSchema
	// ErrForeign: the transaction is of another database, or schema, than the
	// store.
	ErrForeign = pgwire.ErrForeign
	// ErrUnsafe: a setting does not let the store keep its promises.
	ErrUnsafe = pgwire.ErrUnsafe
	// ErrClosed: the store was closed.
	ErrClosed = pgwire.ErrClosed
)
