package handlertx

import (
	"context"
	"errors"
	"time"

	"github.com/jackc/pgx/v5"
)

// ErrUnread names the rule that a handler has broken.
var ErrUnread = errors.New("pgstore: the handler left rows of a query open; read or close them before it returns (Rows.Close, Row.Scan, BatchResults.Close)")

// IsUnread reports whether the answer of a statement is not read to its end. Nothing can
// be sent on the connection then.
func IsUnread(conn *pgx.Conn) bool {
	return conn != nil && !conn.IsClosed() && conn.PgConn().IsBusy()
}

// HasEnded reports whether the connection is open and has no transaction.
func HasEnded(conn *pgx.Conn) bool {
	return conn != nil && !conn.IsClosed() && conn.PgConn().TxStatus() == 'I'
}

// CloseUnread is the error of a handler that has returned err. If it has left rows open,
// the connection is closed, because reading them to their end can take any time. That
// undoes all writes. That takes until limit at the latest.
func CloseUnread(conn *pgx.Conn, limit time.Duration, err error) error {
	if !IsUnread(conn) {
		return err
	}
	ctx, cancel := context.WithTimeout(context.Background(), limit)
	defer cancel()
	_ = conn.PgConn().CancelRequest(ctx) // the server notices a closed connection only when it sends
	cancel()
	_ = conn.Close(ctx)
	if err == nil {
		return ErrUnread
	}
	return &unreadError{err}
}

// unreadError is an error of a handler that has also left rows open.
type unreadError struct{ error }

// Error implements error.
func (e *unreadError) Error() string { return e.error.Error() + "; " + ErrUnread.Error() }

// Unwrap is for errors.Is and errors.As.
func (e *unreadError) Unwrap() error { return e.error }

// Is is for errors.Is.
func (e *unreadError) Is(target error) bool { return target == ErrUnread }

// ConnOf is the connection of a transaction.
func ConnOf(tx pgx.Tx) *pgx.Conn {
	if h, ok := tx.(*Tx); ok {
		tx = h.ForStore()
	}
	return tx.Conn()
}
