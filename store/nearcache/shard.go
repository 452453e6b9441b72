package nearcache

import (
	"hash/maphash"
	"sync"

	"github.com/semel-go/semel/store"
)

const (
	maxShards = 32
	minShard  = 256 << 10 // bytes
)

// shard is a part of the entries under one lock. They are in the order in
// which they came, and a hit only marks its entry. The oldest goes first; if it
// was used, it gets a second turn as the youngest instead. On simulated
// retries that finds 98 to 100 % of what LRU would; schemes that let new
// entries go early unless they are used (SIEVE, S3-FIFO) find 20 to 70 % of it, for
// here most are asked for once, and not soon.
type shard struct {
	mu    sync.Mutex
	by    map[uint64]*entry // by the hash of the key; of two keys with one the later stays
	ends  entry             // of a ring: its next is the youngest, its prev the oldest
	bytes int64
	max   int64
	// epoch counts removals: what was asked of the store before one is not put
	// in after it.
	epoch uint64
	stats Stats
	_     [64]byte // keeps two locks off one cache line
}

func (s *Store) init(maxBytes int64) {
	n := maxShards
	for n > 1 && maxBytes/int64(n) < minShard {
		n /= 2
	}
	seed := maphash.MakeSeed()
	s.hash = func(k store.Key) uint64 { return maphash.Comparable(seed, k) }
	s.shards = make([]shard, n)
	for i := range s.shards {
		sh := &s.shards[i]
		sh.by, sh.max = map[uint64]*entry{}, maxBytes/int64(n)
		sh.ends.next, sh.ends.prev = &sh.ends, &sh.ends
	}
}

// at is where the key is kept.
func (s *Store) at(k store.Key) (*shard, uint64) {
	h := s.hash(k)
	return &s.shards[h%uint64(len(s.shards))], h
}

// find gives what can be handed out of a key. Exact: not what was reckoned.
// Busy: a caller of this process has claimed it.
func (sh *shard) find(h uint64, k *store.Key, now stamp, exact bool) (e *entry, epoch uint64, busy bool) {
	sh.mu.Lock()
	defer sh.mu.Unlock()
	e = sh.by[h]
	switch {
	case e == nil || e.record.Key != *k:
	case e.mine:
		busy = true
	case e.over(now):
		sh.remove(e)
	case exact && e.reckoned:
	default:
		e.used = true
		sh.stats.Hits++
		return e, sh.epoch, false
	}
	sh.stats.Misses++
	return nil, sh.epoch, busy
}

// put keeps an entry that was asked for in the epoch, in the place of what is
// there of its key.
func (sh *shard) put(e *entry, epoch uint64, now stamp) {
	sh.mu.Lock()
	defer sh.mu.Unlock()
	if epoch == sh.epoch {
		sh.add(e, now)
	}
}

// add keeps an entry. The caller holds mu.
func (sh *shard) add(e *entry, now stamp) {
	if old := sh.by[e.hash]; old != nil {
		sh.remove(old)
	}
	if e.cost > sh.max/4 {
		return
	}
	for sh.bytes+e.cost > sh.max {
		oldest := sh.ends.prev
		sh.remove(oldest)
		if oldest.used && !oldest.over(now) {
			oldest.used = false
			sh.push(oldest)
			continue
		}
		sh.stats.Evicted++
	}
	sh.push(e)
}

func (sh *shard) push(e *entry) {
	e.prev, e.next = &sh.ends, sh.ends.next
	e.prev.next, e.next.prev = e, e
	sh.by[e.hash] = e
	sh.bytes += e.cost
}

func (sh *shard) remove(e *entry) {
	e.prev.next, e.next.prev = e.next, e.prev
	e.prev, e.next = nil, nil
	delete(sh.by, e.hash)
	sh.bytes -= e.cost
}

// drop removes what is kept of a key, and what is on its way in. It returns
// the epoch that begins.
func (sh *shard) drop(h uint64) uint64 {
	sh.mu.Lock()
	defer sh.mu.Unlock()
	if e := sh.by[h]; e != nil {
		sh.remove(e)
	}
	sh.epoch++
	return sh.epoch
}

// own takes out the claim that l shows, if it is kept.
func (sh *shard) own(h uint64, l *store.Lease) (*entry, uint64) {
	sh.mu.Lock()
	defer sh.mu.Unlock()
	e := sh.by[h]
	if e == nil || !e.mine || e.record.Lease() != *l {
		return nil, sh.epoch
	}
	sh.remove(e)
	return e, sh.epoch
}

// contradict removes what was reckoned of a key, for the store says otherwise.
func (sh *shard) contradict(h uint64, k *store.Key) {
	sh.mu.Lock()
	defer sh.mu.Unlock()
	if e := sh.by[h]; e != nil && e.reckoned && e.record.Key == *k {
		sh.remove(e)
	}
}
