package memstore

import (
	"context"
	"fmt"
	"strconv"

	"github.com/semel-go/semel/store"
)

// Sweep implements store.Store. The cursor is the number of a shard; a shard
// that holds more than the limit is looked at again.
func (s *Store) Sweep(ctx context.Context, from store.Cursor, limit int) (store.SweepResult, error) {
	if err := ctx.Err(); err != nil {
		return store.SweepResult{}, err
	}
	first := 0
	if from != "" {
		n, err := strconv.Atoi(string(from))
		if err != nil || n < 0 || n >= shards {
			return store.SweepResult{}, fmt.Errorf("memstore: sweep cursor %q is not of this store", from)
		}
		first = n
	}
	if limit < 1 {
		return store.SweepResult{}, fmt.Errorf("memstore: sweep limit is %d; at least 1 is needed", limit)
	}
	res := store.SweepResult{Now: clock(s.now())}
	for i := first; i < shards; i++ {
		if left := limit - res.Deleted - len(res.Lapsed); left <= 0 || !s.sweepShard(&s.shard[i], &res, left, limit) {
			res.Next = store.Cursor(strconv.Itoa(i))
			return res, nil
		}
	}
	return res, nil
}

// sweepShard reports whether it is done with the shard. Lapsed records are the
// caller's to change, so a shard that has more of them than a whole step takes
// is passed over, lest a sweep never ends; the next pass sees the others.
func (s *Store) sweepShard(sh *shard, res *store.SweepResult, left, limit int) bool {
	sh.mu.Lock()
	defer sh.mu.Unlock()
	now := res.Now // one clock for all that is handed back
	for hash, w := range sh.all() {
		if r := w.numbers(); !r.Expired(now) {
			continue
		}
		if left == 0 {
			return false
		}
		s.raise(w.fence())
		sh.remove(hash, w)
		res.Deleted++
		left--
	}
	whole := left == limit // the step was this shard's alone
	for _, w := range sh.all() {
		if r := w.numbers(); !r.Lapsed(now) {
			continue
		}
		if left == 0 {
			return whole
		}
		res.Lapsed = append(res.Lapsed, w.record(claimed{}))
		left--
	}
	return true
}

// raise keeps the highest swept fence: a key that comes back gets a higher one
// than it had, even if the clock was set back meanwhile.
func (s *Store) raise(fence uint64) {
	for {
		old := s.floor.Load()
		if fence <= old || s.floor.CompareAndSwap(old, fence) {
			return
		}
	}
}
