package sqlitestore

import (
	"database/sql"
	"database/sql/driver"
	"errors"
	"fmt"

	"modernc.org/sqlite"
	sqlite3 "modernc.org/sqlite/lib"

	"github.com/semel-go/semel/store"
)

// Errors that a caller can handle. They wrap the driver's *sqlite.Error, if
// there is one.
var (
	// ErrBusy: another process, or one of the application's transactions,
	// held the file for longer than Options.BusyTimeout, or until the context of a
	// claim ended. Nothing was changed. Call again, and keep transactions short.
	ErrBusy = fmt.Errorf("another process or transaction locks the database: %w", store.ErrBusy)
	// ErrFull: the disk is full, or max_page_count is reached. Nothing was
	// changed. Recorded outcomes are still replayed. Free disk space.
	ErrFull = errors.New("no disk space left for the database")
	// ErrSchema: the schema is missing, older or newer than this version of
	// the package needs. Call Migrate, or update the package.
	ErrSchema = errors.New("the schema has the wrong version")
	// ErrForeign: the file is no SQLite database, or another program made its
	// semel_ tables. Give the store another path.
	ErrForeign = errors.New("not a database of this package")
	// ErrUnsafe: with a setting, on this file system, or under a name that is
	// not the file's only one or stands for another file now, the store cannot
	// keep its promises.
	ErrUnsafe = errors.New("unsafe setting")
	// ErrClosed: the store was closed.
	ErrClosed = errors.New("sqlitestore: closed")
	// ErrTxTimeout is the cause with which a handler's context ends in
	// Atomic.Run after Options.MaxTx. Its writes were rolled back.
	ErrTxTimeout = errors.New("sqlitestore: the transaction took longer than Options.MaxTx")
)

// explain adds the method to an error, and maps the driver's errors to this
// package's. Errors about a record stay as they are.
func explain(what string, err error) error {
	if err == nil || errors.Is(err, store.ErrNotFound) || errors.Is(err, store.ErrLeaseLost) || errors.Is(err, ErrClosed) {
		return err
	}
	switch code := code(err); {
	case code == sqlite3.SQLITE_BUSY_SNAPSHOT:
		err = fmt.Errorf("%w: the transaction read before it wrote; begin it with BEGIN IMMEDIATE (_txlock=immediate): %w", ErrBusy, err)
	case code&0xff == sqlite3.SQLITE_BUSY, code&0xff == sqlite3.SQLITE_LOCKED:
		err = fmt.Errorf("%w: %w", ErrBusy, err)
	case code&0xff == sqlite3.SQLITE_FULL:
		err = fmt.Errorf("%w: %w", ErrFull, err)
	case code&0xff == sqlite3.SQLITE_NOTADB:
		err = fmt.Errorf("%w: %w", ErrForeign, err)
	case code&0xff == sqlite3.SQLITE_READONLY:
		err = fmt.Errorf("the process may not write the file, or not its directory, where WAL makes two more: %w", err)
	case code&0xff == sqlite3.SQLITE_CANTOPEN:
		err = fmt.Errorf("does the directory exist, and may the process write to it? %w", err)
	}
	return fmt.Errorf("sqlitestore: %s: %w", what, err)
}

// code is SQLite's extended result code, 0 if err is not SQLite's.
func code(err error) int {
	if e, ok := errors.AsType[*sqlite.Error](err); ok {
		return e.Code()
	}
	return 0
}

// inDoubt reports whether a COMMIT that failed with a code may still take effect.
// After an error of the disk the whole transaction may be in the log, and is then
// committed when the file is opened after a crash. With any other code it was
// rolled back.
func inDoubt(code int) bool { return code&0xff == sqlite3.SQLITE_IOERR }

// violated reports whether a COMMIT was refused because of what was written, such as a
// foreign key that is deferred.
func violated(err error) bool { return code(err)&0xff == sqlite3.SQLITE_CONSTRAINT }

func busy(err error) bool { return code(err)&0xff == sqlite3.SQLITE_BUSY }

// broken reports whether err is the database's, so that the transaction may be
// rolled back. Otherwise it concerns one request, and the transaction is intact.
func broken(err error) bool {
	return code(err) != 0 || errors.Is(err, driver.ErrBadConn) || errors.Is(err, sql.ErrConnDone) || errors.Is(err, sql.ErrTxDone)
}
