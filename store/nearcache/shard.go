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

// shard is a part of the entries under one lock, in a list from the youngest to
// the oldest. A hit only marks its entry as used. When the shard is full, it
// removes the oldest entry, or if that was used, clears the mark and makes it the
// youngest (the CLOCK algorithm). On simulated retries CLOCK has 98 to 100 % of
// the hits of LRU; SIEVE and S3-FIFO have 20 to 70 %, because most keys here are
// asked for once more, and late.
type shard struct {
	mu     sync.Mutex
	byHash map[uint64]*entry // if two keys have one hash, the later is kept
	list   entry             // the head of a ring: its next is the youngest, its prev the oldest
	bytes  int64
	max    int64
	// epoch counts invalidations. A record that was looked up in an earlier
	// epoch is not put in.
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
		sh.byHash, sh.max = map[uint64]*entry{}, maxBytes/int64(n)
		sh.list.next, sh.list.prev = &sh.list, &sh.list
	}
}

// shardOf is the shard and the hash of a key.
func (s *Store) shardOf(k store.Key) (*shard, uint64) {
	h := s.hash(k)
	return &s.shards[h%uint64(len(s.shards))], h
}

// find is the entry of a key that may be used at now. Exact: not one with
// estimated times. Claimed: a caller of this process holds the key.
func (sh *shard) find(h uint64, k *store.Key, now stamp, exact bool) (e *entry, epoch uint64, claimed bool) {
	sh.mu.Lock()
	defer sh.mu.Unlock()
	e = sh.byHash[h]
	switch {
	case e == nil || e.record.Key != *k:
	case e.ownClaim:
		claimed = true
	case e.expired(now):
		sh.remove(e)
	case exact && e.estimated:
	default:
		e.used = true
		sh.stats.Hits++
		return e, sh.epoch, false
	}
	sh.stats.Misses++
	return nil, sh.epoch, claimed
}

// put adds an entry that was looked up in the epoch, in place of the entry with
// its hash.
func (sh *shard) put(e *entry, epoch uint64, now stamp) {
	sh.mu.Lock()
	defer sh.mu.Unlock()
	if epoch == sh.epoch {
		sh.add(e, now)
	}
}

// add adds an entry. The caller holds mu.
func (sh *shard) add(e *entry, now stamp) {
	if old := sh.byHash[e.hash]; old != nil {
		sh.remove(old)
	}
	if e.cost > sh.max/4 {
		return
	}
	for sh.bytes+e.cost > sh.max {
		oldest := sh.list.prev
		sh.remove(oldest)
		if oldest.used && !oldest.expired(now) {
			oldest.used = false
			sh.push(oldest)
			continue
		}
		sh.stats.Evicted++
	}
	sh.push(e)
}

func (sh *shard) push(e *entry) {
	e.prev, e.next = &sh.list, sh.list.next
	e.prev.next, e.next.prev = e, e
	sh.byHash[e.hash] = e
	sh.bytes += e.cost
}

func (sh *shard) remove(e *entry) {
	e.prev.next, e.next.prev = e.next, e.prev
	e.prev, e.next = nil, nil
	delete(sh.byHash, e.hash)
	sh.bytes -= e.cost
}

// invalidate removes the entry with a hash, and begins a new epoch, so that
// records which were looked up before are not put in. It returns that epoch.
func (sh *shard) invalidate(h uint64) uint64 {
	sh.mu.Lock()
	defer sh.mu.Unlock()
	if e := sh.byHash[h]; e != nil {
		sh.remove(e)
	}
	sh.epoch++
	return sh.epoch
}

// setSettling notes in the claim of a lease when its settlement was first sent.
func (sh *shard) setSettling(h uint64, l *store.Lease, sent stamp) {
	sh.mu.Lock()
	defer sh.mu.Unlock()
	if e := sh.claim(h, l); e != nil && e.settling == (stamp{}) {
		e.settling = sent
	}
}

// takeClaim removes and returns the claim of a lease.
func (sh *shard) takeClaim(h uint64, l *store.Lease) (*entry, uint64) {
	sh.mu.Lock()
	defer sh.mu.Unlock()
	e := sh.claim(h, l)
	if e != nil {
		sh.remove(e)
	}
	return e, sh.epoch
}

// claim returns the claim of a lease. The caller holds mu.
func (sh *shard) claim(h uint64, l *store.Lease) *entry {
	if e := sh.byHash[h]; e != nil && e.ownClaim && e.record.Lease() == *l {
		return e
	}
	return nil
}

// removeEstimated removes an entry with estimated times, because the store
// returned something else.
func (sh *shard) removeEstimated(h uint64, k *store.Key) {
	sh.mu.Lock()
	defer sh.mu.Unlock()
	if e := sh.byHash[h]; e != nil && e.estimated && e.record.Key == *k {
		sh.remove(e)
	}
}

// Stats are the size and the counters of a cache. Each figure is right by itself;
// together they may be of slightly different moments.
type Stats struct {
	Hits    uint64 // lookups that were answered from memory
	Misses  uint64 // lookups that went to the front or the store
	Evicted uint64 // records that were removed because the cache was full
	Records int    // now in memory, this process's claims included
	Bytes   int64  // that they take
}

// Stats returns the size and the counters of the cache.
func (s *Store) Stats() Stats {
	var sum Stats
	for i := range s.shards {
		sh := &s.shards[i]
		sh.mu.Lock()
		sum.Hits += sh.stats.Hits
		sum.Misses += sh.stats.Misses
		sum.Evicted += sh.stats.Evicted
		sum.Records += len(sh.byHash)
		sum.Bytes += sh.bytes
		sh.mu.Unlock()
	}
	return sum
}
