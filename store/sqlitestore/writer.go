package sqlitestore

import (
	"context"
	"database/sql"
	"database/sql/driver"
	"errors"
	"time"

	"github.com/semel-go/semel/store"
	"github.com/semel-go/semel/store/coalesce"
)

// change is a function that runs in a transaction. It runs again in another one
// if the first is rolled back.
type change func(k *lockedTx) error

type (
	batcher = coalesce.Batcher[change, struct{}]
	item    = coalesce.Item[change, struct{}]
)

// writer owns the connection for all changes outside of the application's
// transactions. Changes that arrive while a transaction commits share the next
// one. Safe for concurrent use.
type writer struct {
	db      *sql.DB
	now     func() time.Time
	busy    time.Duration
	gate    *gate
	batcher *batcher
	file    *identity

	// Only the flush uses these, and there is one at a time.
	conn       *sql.Conn // nil: not open
	stmts      *prepared
	sweptFence int64 // highest swept fence, as far as it was read
}

func newWriter(db *sql.DB, o *Options, g *gate, file *identity) *writer {
	w := &writer{db: db, now: o.Now, busy: o.BusyTimeout, gate: g, file: file}
	w.batcher = coalesce.New(w.flush, &coalesce.Options[change]{MaxBatch: o.MaxBatch})
	return w
}

// do runs and commits c.
func (w *writer) do(ctx context.Context, c change) error {
	_, err := w.batcher.Do(ctx, c)
	return w.explain(err)
}

// urgent is do ahead of queued changes.
func (w *writer) urgent(ctx context.Context, c change) error {
	_, err := w.batcher.Urgent(ctx, c)
	return w.explain(err)
}

func (w *writer) explain(err error) error {
	if errors.Is(err, coalesce.ErrClosed) {
		return ErrClosed
	}
	return explain("write", err)
}

// close waits until queued changes have their answers, and closes the connection.
func (w *writer) close() {
	w.batcher.Close()
	w.disconnect(nil)
}

// flush runs a batch in one transaction. If one request breaks it, or its commit fails, each
// request runs again in a transaction of its own, so that none fails another: on a full disk
// duplicates, which write nothing, get their outcomes.
func (w *writer) flush(ctx context.Context, batch []*item) {
	if w.runBatch(ctx, batch) || len(batch) == 1 {
		return
	}
	for i := range batch {
		w.runBatch(ctx, batch[i:i+1])
	}
}

// runBatch runs a batch in one transaction. It reports false if a request broke
// the transaction, or its commit failed, and then nothing was changed.
func (w *writer) runBatch(ctx context.Context, batch []*item) (intact bool) {
	fail := func(err error) {
		for _, it := range batch {
			it.Err = err
		}
	}
	if err := w.begin(ctx); err != nil {
		fail(err)
		return true
	}
	defer w.gate.leave()
	ended := false
	defer func() {
		if !ended {
			w.rollback() // broken, or a panic
		}
	}()
	k := &lockedTx{db: w.stmts, now: clock(w.now()), sweptFence: w.sweptFence}
	for _, it := range batch {
		if it.Err = it.Req(k); broken(it.Err) {
			return false
		}
	}
	if err := w.file.check(); err != nil {
		fail(err)
		return true
	}
	if _, err := w.stmts.exec(background, stCommit); err != nil {
		fail(err) // answers are void, too: they may depend on another request's change
		return false
	}
	ended, w.sweptFence = true, k.sweptFence
	return true
}

// background is the context of the statements of a batch. It has no Done channel,
// because the driver would start a goroutine for each statement.
var background = context.Background()

// begin opens a transaction with the write lock, and enters the gate. It polls,
// because SQLite's own wait for a lock cannot be cancelled.
func (w *writer) begin(ctx context.Context) error {
	if err := w.gate.enter(ctx); err != nil {
		return err
	}
	err := untilFree(ctx, w.busy, func() error { return w.tryBegin(ctx) })
	if err != nil {
		w.gate.leave()
	}
	return err
}

func (w *writer) tryBegin(ctx context.Context) error {
	if w.conn == nil {
		if err := w.connect(ctx); err != nil {
			return err
		}
	}
	_, err := w.stmts.exec(background, stBegin)
	if err != nil && !busy(err) {
		w.disconnect(driver.ErrBadConn)
	}
	return err
}

func (w *writer) connect(ctx context.Context) error {
	conn, err := w.db.Conn(ctx)
	if err != nil {
		return err
	}
	stmts, err := prepare(ctx, conn, stBegin, stCommit, stRollback, stMeta, stSelect, stInsert, stReplace, stSettle, stRenew, stRaise, stDelete, stRaiseTo, stErase, stRecordStep, stSteps, stDropSteps, stDeleteSteps,
		stSetTimer, stMoveTimer, stDropTimer, stTimerVersion, stReceive, stReceiveStep)
	if err != nil {
		_ = conn.Close()
		return err
	}
	w.conn, w.stmts = conn, stmts
	return nil
}

// rollback rolls the transaction back. If SQLite has done so already, it returns
// an error, and a new connection is opened, which has no transaction.
func (w *writer) rollback() {
	if _, err := w.stmts.exec(background, stRollback); err != nil {
		w.disconnect(driver.ErrBadConn)
	}
}

// disconnect closes the connection. The error why tells whether for good.
func (w *writer) disconnect(why error) {
	if w.conn == nil {
		return
	}
	w.stmts.close()
	_ = w.conn.Raw(func(any) error { return why })
	_ = w.conn.Close()
	w.conn, w.stmts = nil, nil
}

// untilFree calls fn until it is not busy, for up to limit.
func untilFree(ctx context.Context, limit time.Duration, fn func() error) error {
	err := fn()
	if !busy(err) {
		return err
	}
	wait, t := 50*time.Microsecond, time.NewTimer(0)
	defer t.Stop()
	for start := time.Now(); busy(err) && time.Since(start) < limit; err = fn() {
		wait = min(wait*3/2, 5*time.Millisecond)
		t.Reset(wait)
		select {
		case <-t.C:
		case <-ctx.Done():
			return ctx.Err()
		}
	}
	return err
}

// clock rounds t as records keep it.
func clock(t time.Time) time.Time { return store.Time(store.Micros(t)) }
