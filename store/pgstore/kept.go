package pgstore

import (
	"context"
	"sync/atomic"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgtype"

	"github.com/semel-go/semel/store"
	"github.com/semel-go/semel/store/coalesce"
)

// A duplicate of what is kept needs no transaction: a terminal record stays as
// it is until it expires. So where duplicates are many, a call of Atomic.Run
// looks for one first, in one statement with all who look at the time, on one
// of the store's own connections. If it finds one it has its answer, and has
// taken, or waited for, no connection of the application's. If not it begins
// its transaction, and looks under the key's lock: nothing else rests on the
// first look, and it may fail.

type (
	keptLane = coalesce.Lane[keptRequest, store.Found]
	keptItem = coalesce.Item[keptRequest, store.Found]
)

type keptRequest struct {
	id  pgtype.UUID
	key store.Key
}

// keptPatience is how long such a look may take: it can be done without.
const keptPatience = time.Second

func (s *Store) newKeptLane() *keptLane {
	return coalesce.New(s.flushKept, &coalesce.Options[keptRequest]{MaxBatch: s.opt.MaxBatch})
}

// flushKept reads the records of a batch in one round trip.
func (s *Store) flushKept(ctx context.Context, batch []*keptItem) {
	ctx, cancel := context.WithTimeout(ctx, keptPatience)
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
	ids := array(column(batch, func(it *keptItem) *pgtype.UUID { return &it.Req.id }))
	err := s.sendBatch(ctx, s.sql.kept, []any{ids}, func(rows pgx.Rows) error {
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

// lookForKept is the record of a key, if it is one that stays as it is.
func (s *Store) lookForKept(ctx context.Context, id pgtype.UUID, key store.Key) (f store.Found, is bool) {
	f, err := s.kept.Do(ctx, keptRequest{id, key})
	return f, err == nil && stays(&f)
}

// stays reports whether a record answers every call of its key from now on.
func stays(f *store.Found) bool { return f.Record.State.Terminal() && !f.Record.Expired(f.Now) }

// tide tells whether to expect a duplicate of what is kept.
type tide struct {
	share   atomic.Int32 // of them, in the recent calls, in millionths
	running atomic.Int32 // calls
}

const whole = 1_000_000

// saw counts a call in. Of two at once one may be lost.
func (t *tide) saw(duplicate bool) {
	is, to := t.share.Load(), int32(0)
	if duplicate {
		to = whole
	}
	t.share.Store(is + (to-is)/16)
}

// high reports whether a look by itself pays. A duplicate that it finds is
// spared two round trips. It costs one, which those who run at the time share;
// in a crowd, about a twentieth of the two.
func (t *tide) high() bool {
	share := int64(t.share.Load())
	return share > whole/20 && share*int64(t.running.Load()) > whole*2/3
}
