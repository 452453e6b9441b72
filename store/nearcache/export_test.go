package nearcache

import (
	"context"

	"github.com/semel-go/semel/store"
)

// Purge empties the cache.
func (s *Store) Purge() {
	for i := range s.shards {
		sh := &s.shards[i]
		sh.mu.Lock()
		for sh.list.next != &sh.list {
			sh.remove(sh.list.next)
		}
		sh.mu.Unlock()
	}
}

// Collide leaves n hashes, so that keys meet.
func (s *Store) Collide(n uint64) {
	full := s.hash
	s.hash = func(k store.Key) uint64 { return full(k) % n }
}

// Limit is what each part may take, in bytes; Parts is their number.
func (s *Store) Limit() int64 { return s.shards[0].max }
func (s *Store) Parts() int   { return len(s.shards) }

// Check panics if a list, a map and a count of a shard disagree.
func (s *Store) Check() {
	for i := range s.shards {
		sh := &s.shards[i]
		sh.mu.Lock()
		var bytes int64
		n := 0
		for e := sh.list.next; e != &sh.list; e = e.next {
			if sh.byHash[e.hash] != e || e.next.prev != e || e.prev.next != e {
				panic("an entry is in the wrong place")
			}
			bytes += e.cost
			n++
		}
		if bytes != sh.bytes || n != len(sh.byHash) || bytes > sh.max {
			panic("the count of bytes or of entries is wrong, or above the limit")
		}
		sh.mu.Unlock()
	}
}

// Late lets the front get the calls that were under way.
func (s *Store) Late(ctx context.Context) {
	if f, ok := s.front.st.(interface{ Deliver(context.Context) int }); ok {
		f.Deliver(ctx)
	}
}
