package memstore

import (
	"context"
	"fmt"
	"slices"
	"strconv"
	"strings"

	"github.com/semel-go/semel/store"
)

// Sweep implements store.Store. The cursor is the number of a shard, and behind
// a slash the last lapsed record of it that was handed back, if there are more.
func (s *Store) Sweep(ctx context.Context, from store.Cursor, limit int) (store.SweepResult, error) {
	if err := ctx.Err(); err != nil {
		return store.SweepResult{}, err
	}
	first, after := 0, ""
	if from != "" {
		number, last, _ := strings.Cut(string(from), "/")
		n, err := strconv.Atoi(number)
		if err != nil || n < 0 || n >= len(s.shard) {
			return store.SweepResult{}, fmt.Errorf("memstore: sweep cursor %q is not of this store", from)
		}
		first, after = n, last
	}
	if limit < 1 {
		return store.SweepResult{}, fmt.Errorf("memstore: sweep limit is %d; at least 1 is needed", limit)
	}
	res := store.SweepResult{Now: clock(s.now())}
	for i := first; i < len(s.shard); i++ {
		left := limit - res.Deleted - len(res.Lapsed)
		if last, done := s.sweepShard(&s.shard[i], &res, left, after); !done {
			res.Next = store.Cursor(strconv.Itoa(i) + "/" + last)
			return res, nil
		}
		after = ""
	}
	return res, nil
}

// sweepShard reports whether it is done with the shard, and if not the last
// lapsed record that was handed back, in this step or in one before. Lapsed
// records are the caller's to change, so they go in the order of their keys:
// a pass comes to each, and to an end, whatever becomes of them.
func (s *Store) sweepShard(sh *shard, res *store.SweepResult, left int, after string) (last string, done bool) {
	sh.mu.Lock()
	defer sh.mu.Unlock()
	now := res.Now // one clock for all that is handed back
	for at, where := range sh.resting() {
		r := sh.row(where).numbers()
		if !r.Expired(now) {
			continue
		}
		if left == 0 {
			return after, false
		}
		s.raise(r.Fence)
		sh.drop(at, where)
		res.Deleted++
		left--
	}
	sh.tidy()
	var lapsed []store.Record
	for r := range sh.all(func(r *store.Record) bool { return r.Lapsed(now) }) {
		if inOrder(&r) > after {
			lapsed = append(lapsed, r)
		}
	}
	if len(lapsed) <= left {
		res.Lapsed = append(res.Lapsed, lapsed...)
		return "", true
	}
	slices.SortFunc(lapsed, func(a, b store.Record) int { return strings.Compare(inOrder(&a), inOrder(&b)) })
	if left > 0 {
		res.Lapsed = append(res.Lapsed, lapsed[:left]...)
		after = inOrder(&lapsed[left-1])
	}
	return after, false
}

// inOrder is a text to sort records by. The parts of a key hold no zero byte.
func inOrder(r *store.Record) string {
	return r.Key.Operation + "\x00" + r.Key.Tenant + "\x00" + r.Key.Value
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
