package handlertx

import (
	"context"
	"errors"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgconn"
	"github.com/jackc/pgx/v5/pgproto3"
)

// Lock is an advisory lock with two numbers, or none.
type Lock struct {
	high, low int32
	isSet     bool
}

// NewLock is the lock with two numbers.
func NewLock(high, low int32) Lock { return Lock{high, low, true} }

const (
	held = "EXISTS (SELECT FROM pg_locks WHERE locktype = 'advisory' AND granted AND objsubid = 2 AND classid = $1::integer::oid AND objid = $2::integer::oid"

	// CheckLock fails with DivisionByZero if the transaction does not hold the lock.
	CheckLock = "SELECT 1 / (" + held + " AND pid = pg_backend_pid()))::integer"

	isHeld = "SELECT " + held + " AND database = (SELECT oid FROM pg_database WHERE datname = current_database()))"
)

// Check is the statement that fails with DivisionByZero if the handler has ended the
// transaction with its connection, and has begun another one. It is empty if the handler
// did not get the connection, or if nothing can tell.
func (s *State) Check() (sql string, args []any) {
	switch xid := s.XID(); {
	case xid != "":
		return CheckXID, []any{xid}
	case s.unnamed.Load() && s.Lock.isSet:
		return CheckLock, []any{s.Lock.high, s.Lock.low}
	}
	return "", nil
}

// Querier is a connection or a pool.
type Querier interface {
	QueryRow(ctx context.Context, sql string, args ...any) pgx.Row
}

// EndedUnnamed reports whether it is proved that the handler has ended the transaction of conn
// with the connection itself, which it got when the id of the transaction could not be asked
// for. The lock proves nothing if a statement has failed, because the server releases the lock
// then. If rows are open, other is asked whether anybody holds the lock; conn must be closed
// afterwards. If the connection is closed, the result is false. The context may have ended.
func (s *State) EndedUnnamed(ctx context.Context, conn *pgx.Conn, other Querier, limit time.Duration) bool {
	if !s.unnamed.Load() || !s.Lock.isSet || conn == nil || conn.IsClosed() {
		return false
	}
	if !IsUnread(conn) {
		return s.HasOther(ctx, conn, limit)
	}
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), limit)
	defer cancel()
	var holds bool
	err := other.QueryRow(ctx, isHeld, s.Lock.high, s.Lock.low).Scan(&holds)
	return err == nil && !holds && !hasFailedUnread(conn, limit)
}

// hasFailedUnread reads the open rows of conn to their end, and reports whether they have left a
// failed transaction. It is false if the statement still runs after the limit, and true if
// nothing can tell.
func hasFailedUnread(conn *pgx.Conn, limit time.Duration) bool {
	start, pg := time.Now(), conn.PgConn()
	if err := pg.Conn().SetReadDeadline(start.Add(limit)); err != nil {
		return true
	}
	defer func() { _ = pg.Conn().SetReadDeadline(time.Time{}) }()
	for {
		// The rows hold the lock of the connection, so that its own methods read nothing.
		switch m, err := pg.Frontend().Receive(); end := m.(type) {
		case nil:
			return err == nil || time.Since(start) < limit
		case *pgproto3.ReadyForQuery:
			return end.TxStatus == 'E'
		}
	}
}

// HasOther reports whether conn has another transaction than the one that the handler was
// lent. It is false if the handler did not get the connection, or if nothing can tell. The
// context may have ended.
func (s *State) HasOther(ctx context.Context, conn *pgx.Conn, limit time.Duration) bool {
	sql, args := s.Check()
	if sql == "" || conn.PgConn().TxStatus() != 'T' || conn.PgConn().IsBusy() {
		return false
	}
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), limit)
	defer cancel()
	_, err := conn.Exec(ctx, sql, args...)
	e, ok := errors.AsType[*pgconn.PgError](err)
	return ok && e.Code == DivisionByZero
}
