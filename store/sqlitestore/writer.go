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

// change is what is to be done in a transaction. It may be carried out again
// after one that was rolled back.
type change func(k *work) error

// request is one request to the writer.
type request struct {
	do     change
	atOnce bool // by itself, and errNotNow rather than a wait for the lock
}

var errNotNow = errors.New("the write lock is not free")

type (
	lane = coalesce.Lane[request, struct{}]
	item = coalesce.Item[request, struct{}]
)

// writer has the connection that all changes but those of the application's
// transactions go through: what comes while one transaction commits shares the
// next. Safe for concurrent use.
type writer struct {
	db   *sql.DB
	now  func() time.Time
	busy time.Duration
	gate *gate
	lane *lane

	// The flush's, of which there is one at a time.
	conn  *sql.Conn // nil: to be opened
	stmts *prepared
	floor int64 // highest swept fence, as far as it was read
}

func newWriter(db *sql.DB, o *Options, g *gate) *writer {
	w := &writer{db: db, now: o.Now, busy: o.BusyTimeout, gate: g}
	w.lane = coalesce.New(w.flush, &coalesce.Options[request]{MaxBatch: o.MaxBatch})
	return w
}

// do has c carried out and committed.
func (w *writer) do(ctx context.Context, c change) error {
	_, err := w.lane.Do(ctx, request{do: c})
	return w.explain(err)
}

// atOnce is do if that means no wait for others, else errNotNow.
func (w *writer) atOnce(ctx context.Context, c change) error {
	_, ok, err := w.lane.Alone(ctx, request{do: c, atOnce: true})
	if !ok || errors.Is(err, errNotNow) {
		return errNotNow
	}
	return w.explain(err)
}

// urgent is do, ahead of what is queued.
func (w *writer) urgent(ctx context.Context, c change) error {
	_, err := w.lane.Urgent(ctx, request{do: c})
	return w.explain(err)
}

func (w *writer) explain(err error) error {
	if errors.Is(err, coalesce.ErrClosed) {
		return ErrClosed
	}
	return explain("write", err)
}

// close answers what is queued, then closes the connection.
func (w *writer) close() {
	w.lane.Close()
	w.disconnect(nil)
}

// flush carries out a batch in one transaction. If one request breaks it, the
// transaction is undone, and each gets one of its own: none may sink others.
func (w *writer) flush(ctx context.Context, batch []*item) {
	if w.together(ctx, batch) || len(batch) == 1 {
		return
	}
	for i := range batch {
		w.together(ctx, batch[i:i+1])
	}
}

// together reports false if a request broke the transaction. Then nothing was
// changed.
func (w *writer) together(ctx context.Context, batch []*item) (intact bool) {
	fail := func(err error) {
		for _, it := range batch {
			it.Err = err
		}
	}
	if err := w.begin(ctx, batch[0].Req.atOnce); err != nil {
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
	k := &work{db: w.stmts, now: clock(w.now()), floor: w.floor}
	for _, it := range batch {
		if it.Err = it.Req.do(k); broken(it.Err) {
			return false
		}
	}
	if _, err := w.stmts.exec(background, stCommit); err != nil {
		fail(err) // also what a request found is void, for it may rest on another's change
		return true
	}
	ended, w.floor = true, k.floor
	return true
}

// background is the context of the statements of a batch: short, and without
// a Done channel, for which the driver would start a goroutine each.
var background = context.Background()

// begin opens a transaction with the write lock, and enters the gate. It polls
// by itself, because SQLite's own wait for a lock cannot be cancelled.
func (w *writer) begin(ctx context.Context, atOnce bool) (err error) {
	if atOnce {
		if !w.gate.tryEnter() {
			return errNotNow
		}
		if err = w.tryBegin(ctx); busy(err) {
			err = errNotNow
		}
	} else {
		if err := w.gate.enter(ctx); err != nil {
			return err
		}
		err = untilFree(ctx, w.busy, func() error { return w.tryBegin(ctx) })
	}
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
	stmts, err := prepare(ctx, conn, stBegin, stCommit, stRollback, stMeta, stSelect, stInsert, stReplace, stSettle, stRenew, stRaise, stDelete)
	if err != nil {
		_ = conn.Close()
		return err
	}
	w.conn, w.stmts = conn, stmts
	return nil
}

// rollback undoes the transaction. SQLite may have done so by itself, and
// refuses then: a fresh connection is certain to have none.
func (w *writer) rollback() {
	if _, err := w.stmts.exec(background, stRollback); err != nil {
		w.disconnect(driver.ErrBadConn)
	}
}

// disconnect closes the connection, for good if why says so.
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

// clock is t as records keep it.
func clock(t time.Time) time.Time { return store.Time(store.Micros(t)) }
