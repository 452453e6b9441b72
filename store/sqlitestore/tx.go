package sqlitestore

import (
	"context"
	"database/sql"
	"fmt"
	"time"

	sqlite3 "modernc.org/sqlite/lib"

	"github.com/semel-go/semel/store"
)

// Tx is the store inside a transaction that the caller has open on the same
// file, and commits or rolls back. Its first method takes the write lock, so
// begin the transaction with BEGIN IMMEDIATE (_txlock=immediate in the DSN of
// modernc.org/sqlite); otherwise it fails at once if the file is locked and it
// has read something.
// A transaction of another database is ErrForeign. Not safe for concurrent
// use.
//
// The settings of tx's connection decide how durable the commit is: with
// synchronous=NORMAL a power loss may lose the record together with the
// transaction's other writes.
func (s *Store) Tx(tx *sql.Tx) store.Tx {
	return &storeTx{s: s, db: unprepared{tx}, tx: tx}
}

type storeTx struct {
	s          *Store
	db         executor
	tx         *sql.Tx
	locked     bool
	sweptFence int64
	depth      int
}

// lock takes the write lock, unless the transaction has it, and returns a lockedTx.
func (t *storeTx) lock(ctx context.Context) (*lockedTx, error) {
	if err := t.s.identity.check(); err != nil {
		return nil, err
	}
	if !t.locked {
		if _, err := t.db.exec(ctx, stLock); code(err) == sqlite3.SQLITE_ERROR {
			return nil, fmt.Errorf("%w: the transaction is of a database without Semel's tables: %w", ErrForeign, err)
		} else if err != nil {
			return nil, err
		}
		m, err := readMeta(ctx, t.db)
		if err != nil {
			return nil, err
		}
		if m.store != t.s.id {
			return nil, fmt.Errorf("%w: the transaction is of another file than %s", ErrForeign, t.s.path)
		}
		t.locked, t.sweptFence = true, m.sweptFence
	}
	return &lockedTx{db: t.db, now: t.s.clock(), sweptFence: t.sweptFence}, nil
}

// Claim implements store.Tx.
func (t *storeTx) Claim(ctx context.Context, p store.Proposal) (f store.Found, err error) {
	k, err := t.lock(ctx)
	if err == nil {
		f, err = k.claim(ctx, &p)
	}
	return f, explain("claim in a transaction", err)
}

// Swap implements store.Tx.
func (t *storeTx) Swap(ctx context.Context, seen store.Seen, p store.Proposal) (f store.Found, err error) {
	k, err := t.lock(ctx)
	if err == nil {
		f, err = k.swap(ctx, seen, &p)
	}
	return f, explain("swap in a transaction", err)
}

// Settle implements store.Tx.
func (t *storeTx) Settle(ctx context.Context, l store.Lease, s store.Settlement) error {
	k, err := t.lock(ctx)
	if err == nil {
		err = k.settle(ctx, l, &s)
	}
	return explain("settle in a transaction", err)
}

// Nested implements store.Tx by a savepoint.
func (t *storeTx) Nested(ctx context.Context, fn func() error) (err error) {
	name := fmt.Sprintf("semel_%d", t.depth)
	if err := t.exec(ctx, "SAVEPOINT "+name); err != nil {
		return explain("savepoint", err)
	}
	locked, returned := t.locked, false
	t.depth++
	defer func() {
		t.depth--
		if returned && err == nil {
			return
		}
		t.locked = locked // a rollback to the savepoint releases a lock that was taken since
		// The caller's context may have ended before the transaction.
		undo, cancel := context.WithTimeout(context.WithoutCancel(ctx), time.Second)
		defer cancel()
		_, uerr := t.tx.ExecContext(undo, "ROLLBACK TO "+name+"; RELEASE "+name)
		if uerr != nil && returned {
			err = fmt.Errorf("sqlitestore: undo to the savepoint: %w, after: %w", uerr, err)
		}
	}()
	err = fn()
	returned = true
	if err == nil {
		err = explain("release the savepoint", t.exec(ctx, "RELEASE "+name))
	}
	return err
}

// exec executes a query without the end of ctx interrupting it, because nobody
// could tell whether an interrupted one took effect.
func (t *storeTx) exec(ctx context.Context, query string) error {
	if err := ctx.Err(); err != nil {
		return err
	}
	_, err := t.tx.ExecContext(context.WithoutCancel(ctx), query)
	return err
}
