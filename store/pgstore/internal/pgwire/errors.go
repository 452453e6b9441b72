package pgwire

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"strings"
	"time"

	"github.com/jackc/pgx/v5/pgconn"

	"github.com/semel-go/semel/store"
	"github.com/semel-go/semel/store/coalesce"
)

// Errors that callers of pgstore and pgkafka can act upon. Both packages export
// them, and document them there.
var (
	ErrBusy    = fmt.Errorf("the row is locked by another transaction: %w", store.ErrBusy)
	ErrFull    = errors.New("the disk of the database is full")
	ErrSchema  = errors.New("the schema does not match this version")
	ErrForeign = errors.New("the transaction belongs to another database")
	ErrUnsafe  = errors.New("unsafe setting")
	ErrRights  = errors.New("the role lacks rights")
	ErrClosed  = errors.New("pgstore: closed")
)

// PostgreSQL's error codes that the packages distinguish.
const (
	SerializationFailure = "40001"
	deadlockDetected     = "40P01"
	LockNotAvailable     = "55P03"
	UniqueViolation      = "23505"
	checkViolation       = "23514"
	UndefinedTable       = "42P01"
	ProtocolViolation    = "08P01"
	NoRight              = "42501" // of the role, on a table for example
	DiskFull             = "53100"
	OutOfMemory          = "53200" // also of locks
)

// Explain adds to an error what was done, and the sentinel for its code, and marks which
// calls it concerns. It leaves errors about a record as they are.
func Explain(what string, err error) error {
	switch {
	case err == nil, errors.Is(err, store.ErrNotFound), errors.Is(err, store.ErrLeaseLost), errors.Is(err, ErrClosed):
		return err
	case errors.Is(err, coalesce.ErrClosed):
		return ErrClosed
	}
	switch Code(err) {
	case LockNotAvailable:
		err = fmt.Errorf("%w: %w", ErrBusy, err)
	case DiskFull:
		err = fmt.Errorf("%w: %w", ErrFull, err)
	case UndefinedTable:
		err = fmt.Errorf("%w: %w", ErrSchema, err)
	case NoRight:
		if !errors.Is(err, ErrRights) && strings.Contains(err.Error(), "semel_") { // not a table of the application
			err = fmt.Errorf("%w; semel doctor names the rights that the role lacks", err)
		}
	default:
		err = ExplainConnect(err)
	}
	extent := store.ExtentStore
	if noPartition(err) {
		extent = store.ExtentPart
	}
	return store.WithExtent(fmt.Errorf("pgstore: %s: %w", what, err), extent)
}

// RecordTable is the table of records. A partition is named RecordTable, "_p" and a number.
const RecordTable = "semel_record"

// noPartition reports that the partition of a record is not there, because somebody has
// detached it. The server gives the code of a violated constraint, without a constraint.
func noPartition(err error) bool {
	e, ok := errors.AsType[*pgconn.PgError](err)
	return ok && e.Code == checkViolation && e.TableName == RecordTable && e.ConstraintName == ""
}

// Code is the server's code of err, empty if err is not from the server. Refused reports
// whether the statement was not carried out.
func Code(err error) string {
	if e, ok := errors.AsType[*pgconn.PgError](err); ok {
		return e.Code
	}
	return ""
}

// Refused reports that the server has answered, and has not carried out the
// statement. It is false for 08P01, the answer of a pooler that has lost its server, and
// for the other codes of connections, unless a function of the application raised one. It
// is false, too, if the server has ended the connection: see EndsConnection.
func Refused(err error) bool {
	c := Code(err)
	return c != "" && (!strings.HasPrefix(c, "08") || raised(err)) && !EndsConnection(err)
}

// EndsConnection reports that the server has answered, and has ended the connection
// (FATAL). It may have carried out the statement before: a server that is stopped while it
// commits answers COMMIT first, and then ends the connection with 57P01.
func EndsConnection(err error) bool {
	p, ok := errors.AsType[*pgconn.PgError](err)
	if !ok || strings.HasPrefix(p.Code, "08") {
		return false
	}
	severity := cmp.Or(p.SeverityUnlocalized, p.Severity)
	return severity == "FATAL" || severity == "PANIC"
}

// RefusedForContent reports that the server refused a statement, or COMMIT, for
// the content of the transaction: data, constraints, limits, or an error that a
// trigger raised. If the transaction is of many messages, the cause may be one of
// them. It is false for faults of the server, the connection, rights or tables, for
// locks and rows of other transactions, and for errors that are not the server's,
// unless a function of the application raised the error with such a code.
func RefusedForContent(err error) bool {
	c := Code(err)
	if len(c) != 5 {
		return false
	}
	if raised(err) && !Again(err) {
		return true
	}
	switch c[:2] {
	case "08", "0A", "25", "26", "28", "3D", "3F", "40", "42", "53", "55", "57", "58", "72", "F0", "HV", "XX":
		return false
	}
	return true
}

// raised reports that a function of the application raised the error, with a code of
// its choice: it is no fault of the server. If it raises the code of a conflict, the
// transaction is repeated as after a conflict, and fails in the end.
func raised(err error) bool {
	p, ok := errors.AsType[*pgconn.PgError](err)
	return ok && p.Routine == "exec_stmt_raise"
}

// Again reports that the server refused a statement because of a concurrent one.
// The same statement may succeed if it is sent again.
func Again(err error) bool {
	c := Code(err)
	return c == SerializationFailure || c == deadlockDetected
}

// Tries is how often a statement is sent that conflicts with others.
const Tries = 10

// Retry runs fn again while the server refuses it because of concurrent statements,
// Tries times at most.
func Retry(fn func() error) (err error) {
	for range Tries {
		if err = fn(); !Again(err) {
			return err
		}
	}
	return err
}

// Sleep waits for d, give or take a half. It reports false if ctx ends first.
func Sleep(ctx context.Context, d time.Duration) bool {
	t := time.NewTimer(d/2 + rand.N(d))
	defer t.Stop()
	select {
	case <-t.C:
		return true
	case <-ctx.Done():
		return false
	}
}

// Millis is a duration as a setting of the server.
func Millis(d time.Duration) string { return fmt.Sprintf("%dms", d.Milliseconds()) }
