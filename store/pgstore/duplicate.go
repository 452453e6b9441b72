package pgstore

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"sync/atomic"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgtype"

	"github.com/semel-go/semel"
	"github.com/semel-go/semel/store"
	"github.com/semel-go/semel/store/coalesce"
	"github.com/semel-go/semel/store/pgstore/internal/notify"
	"github.com/semel-go/semel/store/pgstore/internal/pgwire"
	"github.com/semel-go/semel/store/pgstore/internal/table"
)

// waiter is a call that found its key taken. It gets the outcome of the running call,
// even a failure, and does not run the handler itself. Otherwise each call of a crowd
// would run a failing handler once.
type waiter struct {
	refused         bool // a try found the key taken
	waitedForRecord bool // it has waited for recordDelay
	waitsForRecord  bool // set in this try
	ran             bool // in this try the handler ran, and no joined call found its key taken

	id           pgtype.UUID    // of the key, if known
	notification *notify.Waiter // with Options.Notify; nil: the waiter polls
}

// recordDelay is how long a waiter waits until a rolled-back attempt is recorded. After
// that it assumes that the process of the attempt has died.
const recordDelay = 50 * time.Millisecond

// next prepares for the try after one that found the key taken, or that admit refused.
func (w *waiter) next() {
	w.refused, w.waitedForRecord, w.waitsForRecord = true, w.waitsForRecord, false
}

// joinedError is the error of a call that joined the transaction of conn and found its key
// taken. It could not wait, because the transaction may hold the locks that the other call
// needs. So the transaction is rolled back and waits, and no handler has failed.
type joinedError struct {
	error
	conn *pgx.Conn
}

// Unwrap is for errors.Is and errors.As.
func (e *joinedError) Unwrap() error { return e.error }

// confirmFound returns what a call found in a record after a commit that waits for the
// synchronous standby, if there is one.
func (a *Atomic) confirmFound(ctx context.Context, t *ownTx, call semel.Call, res semel.Result, err error) (semel.Result, error) {
	if t.hasStandby {
		if confirmErr := t.limited(ctx, a.store.confirm); confirmErr != nil {
			return semel.Result{}, unavailable(ctx, call, confirmErr)
		}
	}
	return res, err
}

// joinedTaken reports whether the handler of t returned the joinedError of its own
// transaction. The ErrInProgress of any other call is an error like others.
func (t *storeTx) joinedTaken(handlerErr error) bool {
	e, ok := errors.AsType[*joinedError](handlerErr)
	return ok && e.conn != nil && e.conn == t.pipeline.Conn()
}

// admit refuses to run a handler that a waiter must not run.
func (w *waiter) admit(call semel.Call, x *semel.Execution) error {
	switch {
	case !w.refused:
		return nil
	case x.Attempt() > 1:
		return &semel.Error{Reason: semel.ErrReleased, Operation: call.Operation}
	case !w.waitedForRecord: // between the rollback and the record of the attempt there is nothing to see
		w.waitsForRecord = true
		return &semel.Error{Reason: semel.ErrInProgress, Operation: call.Operation}
	}
	return nil
}

// join makes sure that the waiter is woken when the run of its key ends.
func (w *waiter) join(l *notify.Listener) {
	if l == nil || !w.refused {
		return
	}
	w.leave(l)
	w.notification, _ = l.Join(w.id)
}

func (w *waiter) leave(l *notify.Listener) {
	if w.notification != nil {
		l.Leave(w.notification)
		w.notification = nil
	}
}

// sleep waits for about d, or until a notification that the other run has ended.
// It reports false if ctx ends first.
func (w *waiter) sleep(ctx context.Context, d time.Duration) bool {
	if w.notification == nil || w.waitedForRecord { // the attempt is recorded after the notification
		return pgwire.Sleep(ctx, d)
	}
	t := time.NewTimer(d/2 + rand.N(d))
	defer t.Stop()
	select {
	case <-w.notification.Done():
		return true
	case <-t.C:
		return true
	case <-ctx.Done():
		return false
	}
}

// Wait waits for a notification that the record may have changed. If Options.Notify is not
// set, or if the listening connection is broken, Wait returns an error at once, and the
// caller polls instead. Wait implements store.Waiter.
func (s *Store) Wait(ctx context.Context, seen store.Seen) error {
	if s.closed.Load() {
		return ErrClosed
	}
	if s.listener == nil {
		return fmt.Errorf("pgstore: wait: Options.Notify is off: %w", errors.ErrUnsupported)
	}
	w, err := s.listener.Join(table.ID(seen.Key))
	if err != nil {
		return pgwire.Explain("wait", err)
	}
	defer s.listener.Leave(w)
	// There is no notification for a run that ended before Join.
	f, err := s.Get(ctx, seen.Key)
	switch {
	case errors.Is(err, store.ErrNotFound):
		return nil
	case err != nil:
		return err
	case f.Record.State != seen.State || f.Record.Owner != seen.Owner || f.Record.Fence != seen.Fence:
		return nil
	}
	select {
	case <-w.Done():
		return pgwire.Explain("wait", w.Err())
	case <-ctx.Done():
		return ctx.Err()
	}
}

// notifyEnd notifies all callers that wait for a key, in this process and in others,
// that a run of the key has ended. It does not block.
func (s *Store) notifyEnd(id pgtype.UUID) {
	if s.listener != nil {
		s.listener.Notify(id)
	}
}

// A replay needs no transaction, because a terminal record does not change before
// it expires. If many calls are duplicates, a call of Atomic.Run first looks for a
// terminal record on one of the store's own connections, in one statement with all
// calls that do so at the same time. If it finds one, the call is answered without
// a connection of the application's pool. If it finds none, or fails, the call
// begins its transaction, which looks again under the key's lock.

type (
	replayBatcher = coalesce.Batcher[replayRequest, store.Found]
	replayItem    = coalesce.Item[replayRequest, store.Found]
)

type replayRequest struct {
	id  pgtype.UUID
	key store.Key
}

// replayTimeout limits a lookup. After it the call goes on with its transaction.
const replayTimeout = time.Second

func (s *Store) newReplayBatcher() *replayBatcher {
	return coalesce.New(s.flushReplays, &coalesce.Options[replayRequest]{MaxBatch: s.options.MaxBatch})
}

// flushReplays reads the records of a batch in one round trip.
func (s *Store) flushReplays(ctx context.Context, batch []*replayItem) {
	ctx, cancel := context.WithTimeout(ctx, replayTimeout)
	defer cancel()
	if len(batch) == 1 {
		it := batch[0]
		var r reading
		r, it.Err = s.shortWaitSession.get(ctx, it.Req.key)
		it.Res, it.Err = s.confirmed(ctx, "look up a replay", r, it.Err)
		return
	}
	for _, it := range batch {
		it.Err = store.ErrNotFound
	}
	var now, n int64
	var packed []byte
	var hasStandby bool
	to := []any{&now, &hasStandby, &n, &packed}
	ids := pgwire.Array(pgwire.Column(batch, func(it *replayItem) *pgtype.UUID { return &it.Req.id }))
	err := s.sendBatch(ctx, s.sql.GetMany, []any{ids}, to, func() error {
		var w table.Row
		it := batch[n-1]
		if it.Err = w.Unpack(packed); it.Err == nil {
			it.Res, it.Err = w.Found(it.Req.key, now)
		}
		return nil
	})
	if err == nil && hasStandby {
		err = s.confirm(ctx)
	}
	if err != nil {
		failBatch(batch, err)
	}
}

// lookUpReplay finds the record of a key. It reports false unless the record is
// terminal and has not expired.
func (s *Store) lookUpReplay(ctx context.Context, id pgtype.UUID, key store.Key) (f store.Found, ok bool) {
	f, err := s.replays.Do(ctx, replayRequest{id, key})
	return f, err == nil && replayable(&f)
}

// replayable reports whether a record is terminal and has not expired.
func replayable(f *store.Found) bool { return f.Record.State.Terminal() && !f.Record.Expired(f.Now) }

// duplicateRate estimates how many of the calls are duplicates that can be
// replayed.
type duplicateRate struct {
	share   atomic.Int32 // of duplicates among recent calls, in millionths
	running atomic.Int32 // calls in progress
}

const shareUnit = 1_000_000 // 100 %

// count adds one call. If two calls count at once, one may be lost.
func (d *duplicateRate) count(duplicate bool) {
	old, target := d.share.Load(), int32(0)
	if duplicate {
		target = shareUnit
	}
	d.share.Store(old + (target-old)/16)
}

// high reports whether a replay lookup pays. A lookup that finds a duplicate
// saves two round trips. It costs one round trip, which all running calls share.
func (d *duplicateRate) high() bool {
	share := int64(d.share.Load())
	return share > shareUnit/20 && share*int64(d.running.Load()) > shareUnit*2/3
}

// admits reports whether the steps of a call of a batch may begin.
func (b *batchTry) admits(ctx context.Context, c *batchCall) bool {
	if c.steps != nil && b.failedKeys[c.id] { // it has waited for this failure, and must not run the handler again
		c.err = &semel.Error{Reason: semel.ErrReleased, Operation: c.steps.Key().Operation}
		c.steps.Refuse(c.events.Context(ctx), c.err)
		return false
	}
	return c.steps != nil // nil: the call is invalid
}
