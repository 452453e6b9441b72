package sqlitestore

import (
	"context"
	"database/sql"
	"database/sql/driver"
	"errors"
	"sync/atomic"
	"time"

	"modernc.org/sqlite"

	"github.com/semel-go/semel/store"
)

// ownTx is the transaction of one Atomic.Run. It begins with the first write, so
// that a duplicate needs none. Its time is bounded, because nobody else can write
// to the file meanwhile.
type ownTx struct {
	s *Store
	// life is the handler's context, kept because the transaction is rolled
	// back when it ends; end ends it.
	life context.Context //nolint:containedctx // see above
	end  context.CancelCauseFunc

	tx         *sql.Tx // nil: not begun
	in         store.Tx
	committing atomic.Bool // otherwise a commit becomes a rollback
	leave      func()      // releases the lock and the connection
	stop       func() bool // stops watching life and the clock; false: life has ended
}

func (t *ownTx) begin() error {
	if t.tx != nil {
		return nil
	}
	if t.s.closed.Load() {
		return ErrClosed
	}
	if err := t.s.gate.enterHandler(t.life); err != nil {
		return err
	}
	var conn *sql.Conn
	var tx *sql.Tx
	err := untilFree(t.life, t.s.opt.BusyTimeout, func() (err error) {
		conn, tx, err = t.connect()
		return err
	})
	if err != nil {
		t.s.gate.leaveHandler()
		return explain("begin", err)
	}
	t.tx, t.in = tx, t.s.Tx(tx)
	leave := func() {
		t.s.gate.leaveHandler()
		_ = onCommit(conn, nil) // fails only if the connection is lost
		dropIfChanged(conn)
		_ = conn.Close() // waits for the end of the transaction
	}
	// A handler that ignores its context must not keep the lock.
	unwatch := context.AfterFunc(t.life, func() {
		_ = tx.Rollback()
		leave()
	})
	timer := time.AfterFunc(t.s.opt.MaxTx, func() { t.end(ErrTxTimeout) })
	t.leave, t.stop = leave, func() bool {
		timer.Stop()
		return unwatch()
	}
	return nil
}

// commit commits the transaction, if it has begun.
func (t *ownTx) commit() error {
	if t.tx == nil {
		return nil
	}
	t.committing.Store(true)
	err := t.tx.Commit()
	t.ended()
	return err
}

// rollback rolls the transaction back, if it has begun.
func (t *ownTx) rollback() {
	if t.tx != nil {
		_ = t.tx.Rollback() // fails only if it has ended, or its connection has
		t.ended()
	}
}

func (t *ownTx) ended() {
	if t.stop() { // otherwise the watcher calls leave
		t.leave()
	}
	t.tx, t.in = nil, nil
}

// Claim implements store.Tx. A record that answers the call needs no transaction.
// A record that the call replaces is read again under the lock, because another
// writer may replace it first.
func (t *ownTx) Claim(ctx context.Context, p store.Proposal) (store.Found, error) {
	if t.tx == nil {
		f, err := t.s.look(ctx, &p)
		r := &f.Record
		replaced := err == nil && (r.Expired(f.Now) || r.Lapsed(f.Now) || r.State == store.Released)
		if !replaced && !errors.Is(err, store.ErrNotFound) {
			return f, err
		}
	}
	if err := t.begin(); err != nil {
		return store.Found{}, err
	}
	return t.in.Claim(ctx, p)
}

// Swap implements store.Tx.
func (t *ownTx) Swap(ctx context.Context, seen store.Seen, p store.Proposal) (store.Found, error) {
	if err := t.begin(); err != nil {
		return store.Found{}, err
	}
	return t.in.Swap(ctx, seen, p)
}

// Settle implements store.Tx.
func (t *ownTx) Settle(ctx context.Context, l store.Lease, s store.Settlement) error {
	if err := t.begin(); err != nil {
		return err
	}
	return t.in.Settle(ctx, l, s)
}

// Nested implements store.Tx. Before the transaction has begun there is nothing
// to keep apart from fn's writes.
func (t *ownTx) Nested(ctx context.Context, fn func() error) error {
	if t.tx != nil {
		return t.in.Nested(ctx, fn)
	}
	kept := false
	defer func() {
		if !kept {
			t.rollback()
		}
	}()
	err := fn()
	kept = err == nil
	return err
}

// connect begins the transaction on a connection that commits nothing else.
//
// SQLite itself rolls a transaction back when the disk is full, or when a context
// ends while a statement writes. The *sql.Tx does not notice. If the handler
// continues after such an error, each further statement is a transaction of its
// own and would be committed without the record, so the connection turns those
// commits into rollbacks.
func (t *ownTx) connect() (*sql.Conn, *sql.Tx, error) {
	conn, err := t.s.txs.Conn(t.life)
	if err != nil {
		return nil, nil, err
	}
	err = onCommit(conn, func() int32 {
		if t.committing.Load() {
			return 0
		}
		return 1 // it becomes a rollback
	})
	var tx *sql.Tx
	if err == nil {
		tx, err = conn.BeginTx(t.life, nil)
	}
	if err != nil {
		_ = conn.Close()
	}
	return conn, tx, err
}

// dropIfChanged closes a connection whose handler has left a setting with which later calls
// cannot write: the connection itself, or any other of this process and of others.
func dropIfChanged(conn *sql.Conn) {
	for pragma, want := range map[string]string{"PRAGMA query_only": "0", "PRAGMA locking_mode": "normal"} {
		var value string
		if err := conn.QueryRowContext(context.Background(), pragma).Scan(&value); err != nil || value != want {
			_ = conn.Raw(func(any) error { return driver.ErrBadConn }) // database/sql closes it
			return
		}
	}
}

// onCommit makes the connection call fn before each commit. Nil: no longer.
func onCommit(conn *sql.Conn, fn sqlite.CommitHookFn) error {
	return conn.Raw(func(c any) error {
		c.(sqlite.HookRegisterer).RegisterCommitHook(fn)
		return nil
	})
}
