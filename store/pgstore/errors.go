package pgstore

import (
	"errors"
	"fmt"
	"strings"

	"github.com/jackc/pgx/v5/pgconn"

	"github.com/semel-go/semel/store"
	"github.com/semel-go/semel/store/coalesce"
)

// What a caller can do something about. errors.Is finds them; the driver's
// *pgconn.PgError is there too.
var (
	// ErrBusy: another transaction held the row for longer than
	// Options.LockTimeout, or at all where it is not waited for (a renewal).
	// Nothing was changed. Call again, and keep
	// transactions short.
	ErrBusy = errors.New("the row is locked by another transaction")
	// ErrFull: the server has no room on its disk. Nothing was changed.
	ErrFull = errors.New("no room left for the database")
	// ErrSchema: the tables are missing, older or newer than this version of
	// the package needs. Migrate, or update the package.
	ErrSchema = errors.New("the schema does not fit")
	// ErrForeign: the transaction is of another database, or schema, than the
	// store.
	ErrForeign = errors.New("not the database of this store")
	// ErrUnsafe: a setting does not let the store keep its promises.
	ErrUnsafe = errors.New("unsafe setting")
	// ErrClosed: the store was closed.
	ErrClosed = errors.New("pgstore: closed")
)

// PostgreSQL's codes for what is told apart.
const (
	serializationFailure = "40001"
	deadlockDetected     = "40P01"
	lockNotAvailable     = "55P03"
	uniqueViolation      = "23505"
	undefinedTable       = "42P01"
	protocolViolation    = "08P01"
	diskFull             = "53100"
	outOfMemory          = "53200" // also of locks
	invalidStatementName = "26000" // it is not prepared
	featureNotSupported  = "0A000"
)

// explain adds to an error what was done, and what it means here. Findings
// about a record stay as they are.
func explain(what string, err error) error {
	switch {
	case err == nil, errors.Is(err, store.ErrNotFound), errors.Is(err, store.ErrLeaseLost), errors.Is(err, ErrClosed):
		return err
	case errors.Is(err, coalesce.ErrClosed):
		return ErrClosed
	}
	switch code(err) {
	case lockNotAvailable:
		err = fmt.Errorf("%w: %w", ErrBusy, err)
	case diskFull:
		err = fmt.Errorf("%w: %w", ErrFull, err)
	case undefinedTable:
		err = fmt.Errorf("%w: %w", ErrSchema, err)
	}
	return fmt.Errorf("pgstore: %s: %w", what, err)
}

// code is the server's code for err, empty if err is not the server's. An
// error with a code was answered: the statement was not carried out.
func code(err error) string {
	if e, ok := errors.AsType[*pgconn.PgError](err); ok {
		return e.Code
	}
	return ""
}

// refused reports that the server answered, and did not carry it out. A
// pooler that has lost its server answers 08P01, and does not know.
func refused(err error) bool {
	c := code(err)
	return c != "" && !strings.HasPrefix(c, "08")
}

// RefusedForContent reports whether the server refused a statement, or a COMMIT,
// for what was in the transaction: data, constraints, limits, and what triggers
// raise, by whatever code of their own. In a transaction of many messages that
// may be the fault of one, and halves are worth a try. False for what is wrong
// with the server, the connection, rights or tables, for what others hold, and
// for errors that are not the server's, nil too.
func RefusedForContent(err error) bool {
	c := code(err)
	if len(c) != 5 {
		return false
	}
	switch c[:2] {
	case "08", "0A", "25", "26", "28", "3D", "3F", "40", "42", "53", "55", "57", "58", "72", "F0", "HV", "XX":
		return false
	}
	return true
}

// again reports whether the server refused a statement, whole, because of
// another at the same time: it may be sent again.
func again(err error) bool {
	c := code(err)
	return c == serializationFailure || c == deadlockDetected
}

// tries is how often a statement is sent that meets others.
const tries = 10

// retry sends a statement again that the server refused.
func retry(fn func() error) (err error) {
	for range tries {
		if err = fn(); !again(err) {
			return err
		}
	}
	return err
}
