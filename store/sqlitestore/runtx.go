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

// runTx is the transaction of one Atomic.Run. It begins with the first write, so
// that a duplicate needs none. Its time is bounded, because nobody else can write
// to the file meanwhile.
type runTx struct {
	s *Store
	// handlerCtx ends the transaction when it ends; cancel ends it.
	handlerCtx context.Context //nolint:containedctx // see above
	cancel     context.CancelCauseFunc

	tx           *sql.Tx // nil: not begun
	inner        store.Tx
	committing   atomic.Bool // otherwise a commit becomes a rollback
	release      func()      // gives the lock and the connection back
	stopWatching func() bool // stops watching handlerCtx and the clock; false: handlerCtx has ended
}

func (t *runTx) begin() error {
	if t.tx != nil {
		return nil
	}
	if t.s.closed.Load() {
		return ErrClosed
	}
	if err := t.s.gate.enterHandler(t.handlerCtx); err != nil {
		return err
	}
	var conn *sql.Conn
	var tx *sql.Tx
	err := untilFree(t.handlerCtx, t.s.opt.BusyTimeout, func() (err error) {
		conn, tx, err = t.connect()
		return err
	})
	if err != nil {
		t.s.gate.leaveHandler()
		return explain("begin", err)
	}
	t.tx, t.inner = tx, t.s.Tx(tx)
	release := func() {
		t.s.gate.leaveHandler()
		_ = onCommit(conn, nil) // fails only if the connection is lost
		closeIfUnusable(conn)
		_ = conn.Close() // waits for the end of the transaction
	}
	// A handler that ignores its context must not keep the lock.
	unwatch := context.AfterFunc(t.handlerCtx, func() {
		_ = tx.Rollback()
		release()
	})
	timer := time.AfterFunc(t.s.opt.MaxTx, func() { t.cancel(ErrTxTimeout) })
	t.release, t.stopWatching = release, func() bool {
		timer.Stop()
		return unwatch()
	}
	return nil
}

// commit commits the transaction, if it has begun.
func (t *runTx) commit() error {
	if t.tx == nil {
		return nil
	}
	t.committing.Store(true)
	err := t.tx.Commit()
	t.finish()
	return err
}

// rollback rolls the transaction back, if it has begun.
func (t *runTx) rollback() {
	if t.tx != nil {
		_ = t.tx.Rollback() // fails only if it has ended, or its connection has
		t.finish()
	}
}

func (t *runTx) finish() {
	if t.stopWatching() { // otherwise the watcher calls release
		t.release()
	}
	t.tx, t.inner = nil, nil
}

// Claim implements store.Tx. A record that answers the call needs no transaction.
// A record that the call replaces is read again under the lock, because another
// writer may replace it first.
func (t *runTx) Claim(ctx context.Context, p store.Proposal) (store.Found, error) {
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
	return t.inner.Claim(ctx, p)
}

// Swap implements store.Tx.
func (t *runTx) Swap(ctx context.Context, seen store.Seen, p store.Proposal) (store.Found, error) {
	if err := t.begin(); err != nil {
		return store.Found{}, err
	}
	return t.inner.Swap(ctx, seen, p)
}

// Settle implements store.Tx.
func (t *runTx) Settle(ctx context.Context, l store.Lease, s store.Settlement) error {
	if err := t.begin(); err != nil {
		return err
	}
	return t.inner.Settle(ctx, l, s)
}

// Nested implements store.Tx. Before the transaction has begun there is nothing
// to keep apart from fn's writes.
func (t *runTx) Nested(ctx context.Context, fn func() error) error {
	if t.tx != nil {
		return t.inner.Nested(ctx, fn)
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
func (t *runTx) connect() (*sql.Conn, *sql.Tx, error) {
	conn, err := t.s.txs.Conn(t.handlerCtx)
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
		tx, err = conn.BeginTx(t.handlerCtx, nil)
	}
	if err != nil {
		_ = conn.Close()
	}
	return conn, tx, err
}

// closeIfUnusable closes a connection whose handler has left a setting with which later calls
// cannot write: the connection itself, or any other of this process and of others.
func closeIfUnusable(conn *sql.Conn) {
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
