// Package handlertx lends a transaction to a handler, which must not end it.
package handlertx

import (
	"cmp"
	"context"
	"errors"
	"sync/atomic"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgconn"
)

// ErrEnded names the rule that a handler has broken.
var ErrEnded = errors.New("pgstore: the handler must not end its transaction (COMMIT, ROLLBACK, PREPARE TRANSACTION): it is committed together with the record if the handler returns nil, and rolled back after an error")

// State is shared by all transactions of one handler: its own and its savepoints. The
// Bool says that the handler has returned. Afterwards every method fails with
// pgx.ErrTxClosed, because the connection may belong to another run by then.
type State struct {
	atomic.Bool
	refused atomic.Bool
	spoiled atomic.Bool
	unnamed atomic.Bool
	id      atomic.Pointer[ID]
	// Lock is an advisory lock that the transaction holds to its end.
	Lock Lock
	// BeforeUse, if not nil, runs before each use of the transaction. If it fails,
	// the use fails, and nothing is sent.
	BeforeUse func(context.Context) error
	// Limit is how long the look-up of the transaction's id may take: 5 s if it is zero.
	Limit time.Duration
}

// Refused reports whether a statement was refused that would have ended the
// transaction, and forgets it.
func (s *State) Refused() bool { return s.refused.Swap(false) }

// Spoiled reports whether the handler has removed prepared statements from the connection,
// on which the driver still relies, or has changed a setting of the session, which would
// hold for the next user of the connection. Close it after the transaction.
func (s *State) Spoiled() bool { return s.spoiled.Load() }

// ID names a transaction. Another server, or one that was started again, may give XID to
// another transaction.
type ID struct {
	XID    string // empty: not known
	Server string // when the server was started
}

// Lend says that the handler has the connection itself, whose statements nobody checks, in
// the transaction id.
func (s *State) Lend(id ID) { s.id.Store(&id) }

// ID is the id of the transaction at the time when the connection was lent.
func (s *State) ID() ID {
	if id := s.id.Load(); id != nil {
		return *id
	}
	return ID{}
}

// XID is the id of the transaction at the time when the connection was lent, or empty
// if it is not known.
func (s *State) XID() string { return s.ID().XID }

// CurrentID is the statement whose answer is given to Lend. It assigns an id.
const CurrentID = "SELECT pg_current_xact_id()::text, " + ServerStart

// ServerStart is the expression for ID.Server.
const ServerStart = "extract(epoch FROM pg_postmaster_start_time())::text"

// CheckXID fails with DivisionByZero if the transaction has another id than $1.
const CheckXID = "SELECT 1 / (pg_current_xact_id_if_assigned()::text IS NOT DISTINCT FROM $1::text)::integer"

// DivisionByZero is the server's code of the error of CheckXID.
const DivisionByZero = "22012"

// lend looks up the id of the transaction when the handler asks for the connection. If the
// transaction has failed, or rows are open, there is no answer. Then no later one counts,
// because the handler may have ended the transaction by then.
func (s *State) lend(tx pgx.Tx) {
	conn := tx.Conn()
	if s.XID() != "" || s.unnamed.Load() || conn == nil || conn.IsClosed() || conn.PgConn().TxStatus() == 'I' {
		return
	}
	ctx, cancel := context.WithTimeout(context.Background(), cmp.Or(s.Limit, 5*time.Second))
	defer cancel()
	var id ID
	if err := tx.QueryRow(ctx, CurrentID).Scan(&id.XID, &id.Server); err != nil {
		s.unnamed.Store(true)
		return
	}
	s.Lend(id)
}

// Tx is a transaction as a handler sees it. The handler cannot end it by a method, or
// by a statement of a method. The results of Conn and LargeObjects are not guarded.
type Tx struct {
	pgx.Tx
	state     *State
	savepoint bool // a savepoint, which the handler may end
}

// New is tx for a handler.
func New(tx pgx.Tx, state *State) *Tx { return &Tx{Tx: tx, state: state} }

// Failed reports whether a statement has failed, or the connection is closed, so that
// nothing can be committed. Unlike Conn it costs nothing later.
func (t *Tx) Failed() bool {
	conn := t.Tx.Conn()
	return conn.IsClosed() || conn.PgConn().TxStatus() == 'E'
}

// ForStore is the transaction for the store's own statements, in a handler that gives
// the store its transaction.
func (t *Tx) ForStore() pgx.Tx { return &storeTx{t} }

// use runs before each use. It returns pgx.ErrTxClosed after the handler has returned.
func (t *Tx) use(ctx context.Context) error {
	switch {
	case t.state.Load():
		return pgx.ErrTxClosed
	case t.state.BeforeUse != nil:
		return t.state.BeforeUse(ctx)
	}
	return nil
}

// check is use for a statement. It refuses one that would end the transaction.
func (t *Tx) check(ctx context.Context, sql string) error {
	if err := t.use(ctx); err != nil {
		return err
	}
	if spoils(sql) {
		t.state.spoiled.Store(true)
	}
	if Ends(sql) {
		t.state.refused.Store(true)
		return ErrEnded
	}
	return nil
}

// Commit implements pgx.Tx. It fails, except for a savepoint that the handler has set.
func (t *Tx) Commit(ctx context.Context) error { return t.end(ctx, t.Tx.Commit) }

// Rollback implements pgx.Tx. It fails, except for a savepoint that the handler has
// set.
func (t *Tx) Rollback(ctx context.Context) error { return t.end(ctx, t.Tx.Rollback) }

func (t *Tx) end(ctx context.Context, end func(context.Context) error) error {
	switch {
	case t.state.Load():
		return pgx.ErrTxClosed
	case !t.savepoint:
		return ErrEnded
	}
	return end(ctx)
}

// Begin implements pgx.Tx by a savepoint.
func (t *Tx) Begin(ctx context.Context) (pgx.Tx, error) {
	if err := t.use(ctx); err != nil {
		return nil, err
	}
	tx, err := t.Tx.Begin(ctx)
	if err != nil {
		return nil, err
	}
	return &Tx{Tx: tx, state: t.state, savepoint: true}, nil
}

// Prepare implements pgx.Tx.
func (t *Tx) Prepare(ctx context.Context, name, sql string) (*pgconn.StatementDescription, error) {
	if err := t.check(ctx, sql); err != nil {
		return nil, err
	}
	return t.Tx.Prepare(ctx, name, sql)
}

// Conn implements pgx.Tx. The statements of its result are not checked.
func (t *Tx) Conn() *pgx.Conn {
	if t.use(context.Background()) == nil {
		t.state.lend(t.Tx)
	}
	return t.Tx.Conn()
}

// LargeObjects implements pgx.Tx. Its result must not be used after the handler has returned.
func (t *Tx) LargeObjects() pgx.LargeObjects {
	if err := t.use(context.Background()); err != nil {
		b := &pgx.Batch{}
		b.BeginTx(pgx.TxOptions{})
		return pgx.FailedBatchResults(b, err).Tx().LargeObjects() // LargeObjects of a closed transaction
	}
	return t.Tx.LargeObjects()
}

// Exec implements pgx.Tx.
func (t *Tx) Exec(ctx context.Context, sql string, args ...any) (pgconn.CommandTag, error) {
	if err := t.check(ctx, sql); err != nil {
		return pgconn.CommandTag{}, err
	}
	return t.Tx.Exec(ctx, sql, args...)
}

// Query implements pgx.Tx.
func (t *Tx) Query(ctx context.Context, sql string, args ...any) (pgx.Rows, error) {
	if err := t.check(ctx, sql); err != nil {
		return failedRows{Error: err}, err
	}
	return t.Tx.Query(ctx, sql, args...)
}

// QueryRow implements pgx.Tx.
func (t *Tx) QueryRow(ctx context.Context, sql string, args ...any) pgx.Row {
	if err := t.check(ctx, sql); err != nil {
		return failedRows{Error: err}
	}
	return t.Tx.QueryRow(ctx, sql, args...)
}

// SendBatch implements pgx.Tx.
func (t *Tx) SendBatch(ctx context.Context, b *pgx.Batch) pgx.BatchResults {
	err := t.use(ctx)
	for _, q := range b.QueuedQueries {
		if err == nil {
			err = t.check(ctx, q.SQL)
		}
	}
	if err != nil {
		return pgx.FailedBatchResults(b, err)
	}
	return t.Tx.SendBatch(ctx, b)
}

// CopyFrom implements pgx.Tx.
func (t *Tx) CopyFrom(ctx context.Context, table pgx.Identifier, columns []string, rows pgx.CopyFromSource) (int64, error) {
	if err := t.use(ctx); err != nil {
		return 0, err
	}
	return t.Tx.CopyFrom(ctx, table, columns, rows)
}

// storeTx is the transaction of a handler for the store's own statements, which may
// name its savepoints. It fails too after the handler has returned.
type storeTx struct{ *Tx }

// Exec implements pgx.Tx.
func (t *storeTx) Exec(ctx context.Context, sql string, args ...any) (pgconn.CommandTag, error) {
	if err := t.use(ctx); err != nil {
		return pgconn.CommandTag{}, err
	}
	return t.Tx.Tx.Exec(ctx, sql, args...)
}

// SendBatch implements pgx.Tx.
func (t *storeTx) SendBatch(ctx context.Context, b *pgx.Batch) pgx.BatchResults {
	if err := t.use(ctx); err != nil {
		return pgx.FailedBatchResults(b, err)
	}
	return t.Tx.Tx.SendBatch(ctx, b)
}

// Conn implements pgx.Tx.
func (t *storeTx) Conn() *pgx.Conn { return t.Tx.Tx.Conn() }

// failedRows are the rows of a query that was not sent.
type failedRows struct {
	pgx.Rows
	Error error
}

// Close implements pgx.Rows.
func (r failedRows) Close() {}

// Err implements pgx.Rows.
func (r failedRows) Err() error { return r.Error }

// Next implements pgx.Rows.
func (r failedRows) Next() bool { return false }

// Scan implements pgx.Rows.
func (r failedRows) Scan(...any) error { return r.Error }
