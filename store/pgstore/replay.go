package pgstore

import (
	"context"
	"sync/atomic"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgtype"

	"github.com/semel-go/semel/store"
	"github.com/semel-go/semel/store/coalesce"
	"github.com/semel-go/semel/store/pgstore/internal/pgwire"
)

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
	err := s.sendBatch(ctx, s.sql.replays, []any{ids}, func(rows pgx.Rows) error {
		if err := rows.Scan(to...); err != nil {
			return err
		}
		var w row
		it := batch[n-1]
		if it.Err = w.unpack(packed); it.Err == nil {
			it.Res, it.Err = w.found(it.Req.key, now)
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
