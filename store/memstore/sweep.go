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
	res := store.SweepResult{Now: clock(s.now())}
	for i := first; i < shards; i++ {
		if left := limit - res.Deleted - len(res.Lapsed); left <= 0 || !s.sweepShard(&s.shard[i], &res, left) {
			res.Next = store.Cursor(strconv.Itoa(i))
			return res, nil
		}
	}
	return res, nil
}

// sweepShard reports whether it saw the whole shard within the limit. Lapsed
// records are the caller's to change, so a shard with more of them than the
// limit is passed over once the limit is reached, lest a sweep never ends.
func (s *Store) sweepShard(sh *shard, res *store.SweepResult, limit int) bool {
	sh.mu.Lock()
	defer sh.mu.Unlock()
	now := s.now()
	deleted, lapsed, whole := 0, 0, true
	for k, r := range sh.records {
		switch {
		case r.Expired(now) && deleted+lapsed < limit:
			s.raise(r.Fence)
			delete(sh.records, k)
			deleted++
		case r.Expired(now):
			whole = false
		case r.Lapsed(now) && deleted+lapsed < limit:
			res.Lapsed = append(res.Lapsed, *r)
			lapsed++
		}
	}
	res.Deleted += deleted
	return whole
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
