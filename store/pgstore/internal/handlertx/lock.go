package handlertx

import (
	"context"
	"errors"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgconn"
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

// EndedUnnamed reports whether the handler has ended the transaction of conn with the
// connection itself, which it got when the id of the transaction could not be asked for. While
// conn takes no statements, other is asked whether anybody holds the lock. If the connection
// is closed, nothing can tell, and the result is false. The context may have ended.
func (s *State) EndedUnnamed(ctx context.Context, conn *pgx.Conn, other Querier, limit time.Duration) bool {
	if !s.unnamed.Load() || !s.Lock.isSet || conn == nil || conn.IsClosed() {
		return false
	}
	if conn.PgConn().TxStatus() == 'T' && !conn.PgConn().IsBusy() {
		return s.HasOther(ctx, conn, limit)
	}
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), limit)
	defer cancel()
	var holds bool
	err := other.QueryRow(ctx, isHeld, s.Lock.high, s.Lock.low).Scan(&holds)
	return err == nil && !holds
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
