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

// waiter is a call that found its key taken. It gets what came of that, failures
// included, and not the right to run: else a crowd would run a failing handler
// once each.
type waiter struct {
	refused bool // once
	patient bool // it has held back already
	holds   bool // in this try

	id       pgtype.UUID    // of the key, once it is known
	notified *notify.Waiter // of Options.Notify; nil: the waiter polls
}

// patience is how long a waiter gives a try that was rolled back to be noted,
// before it takes it for one that died with its process.
const patience = 50 * time.Millisecond

// next is after a try that found the key taken, or held back.
func (w *waiter) next() { w.refused, w.patient, w.holds = true, w.holds, false }

// admit refuses what is not for a waiter to run.
func (w *waiter) admit(call semel.Call, x *semel.Execution) error {
	switch {
	case !w.refused:
		return nil
	case x.Attempt() > 1:
		return &semel.Error{Reason: semel.ErrReleased, Operation: call.Operation}
	case !w.patient: // between the rollback and its note there is nothing to see
		w.holds = true
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
	w.notified, _ = l.Join(w.id)
}

func (w *waiter) leave(l *notify.Listener) {
	if w.notified != nil {
		l.Leave(w.notified)
		w.notified = nil
	}
}

// sleep waits for about d, or until a notification that the other run has ended.
// It reports false if ctx ends first.
func (w *waiter) sleep(ctx context.Context, d time.Duration) bool {
	if w.notified == nil || w.patient { // it waits for the note of a failed attempt, which comes after the end of the run
		return pgwire.Sleep(ctx, d)
	}
	t := time.NewTimer(d/2 + rand.N(d))
	defer t.Stop()
	select {
	case <-w.notified.Done():
		return true
	case <-t.C:
		return true
	case <-ctx.Done():
		return false
	}
}

// Wait implements store.Waiter under Options.Notify. Else, and while the
// connection that listens is lost, it says so at once, and its caller polls.
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
	// Nobody was notified of what ended before the join.
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

// ended notifies all callers that wait for a key, in this process and in others,
// that a run of the key has ended. It waits for nothing.
func (s *Store) ended(id pgtype.UUID) {
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
	replayLane = coalesce.Lane[replayRequest, store.Found]
	replayItem = coalesce.Item[replayRequest, store.Found]
)

type replayRequest struct {
	id  pgtype.UUID
	key store.Key
}

// replayTimeout limits a lookup. After it the call goes on with its transaction.
const replayTimeout = time.Second

func (s *Store) newReplayLane() *replayLane {
	return coalesce.New(s.flushReplays, &coalesce.Options[replayRequest]{MaxBatch: s.opt.MaxBatch})
}

// flushReplays reads the records of a batch in one round trip.
func (s *Store) flushReplays(ctx context.Context, batch []*replayItem) {
	ctx, cancel := context.WithTimeout(ctx, replayTimeout)
	defer cancel()
	if len(batch) == 1 {
		it := batch[0]
		it.Res, it.Err = s.quick.get(ctx, it.Req.key)
		return
	}
	for _, it := range batch {
		it.Err = store.ErrNotFound
	}
	var now, n int64
	var packed []byte
	to := []any{&now, &n, &packed}
	ids := pgwire.Array(pgwire.Column(batch, func(it *replayItem) *pgtype.UUID { return &it.Req.id }))
	err := s.sendBatch(ctx, s.sql.GetMany, []any{ids}, func(rows pgx.Rows) error {
		if err := rows.Scan(to...); err != nil {
			return err
		}
		var w table.Row
		it := batch[n-1]
		if it.Err = w.Unpack(packed); it.Err == nil {
			it.Res, it.Err = w.Found(it.Req.key, now)
		}
		return nil
	})
	if err != nil {
		failBatch(batch, err)
	}
}

// lookUpReplay finds the record of a key. It reports false unless the record is
// terminal and has not expired.
func (s *Store) lookUpReplay(ctx context.Context, id pgtype.UUID, key store.Key) (f store.Found, ok bool) {
	f, err := s.replays.Do(ctx, replayRequest{id, key})
	return f, err == nil && stays(&f)
}

// stays reports whether a record is terminal and has not expired.
func stays(f *store.Found) bool { return f.Record.State.Terminal() && !f.Record.Expired(f.Now) }

// duplicateRate estimates how many of the calls are duplicates that can be
// replayed.
type duplicateRate struct {
	share   atomic.Int32 // of duplicates among the recent calls, in millionths
	running atomic.Int32 // calls
}

const whole = 1_000_000 // of shares

// count adds one call. If two calls count at once, one may be lost.
func (d *duplicateRate) count(duplicate bool) {
	old, target := d.share.Load(), int32(0)
	if duplicate {
		target = whole
	}
	d.share.Store(old + (target-old)/16)
}

// high reports whether a replay lookup pays. A lookup that finds a duplicate
// saves two round trips. It costs one round trip, which all running calls share.
func (d *duplicateRate) high() bool {
	share := int64(d.share.Load())
	return share > whole/20 && share*int64(d.running.Load()) > whole*2/3
}
