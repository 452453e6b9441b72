// Package memstore keeps records in the memory of one process. It is the
// reference for what a store does, and the oracle that others are compared
// with.
//
// It promises all that package store asks for, except durability: when the
// process ends, every record is gone, and each operation may run once more.
// Use it for tests, and for work whose duplicates cannot outlive the process.
// Never use it behind more than one replica.
package memstore

import (
	"context"
	"fmt"
	"hash/maphash"
	"iter"
	"runtime"
	"sync/atomic"
	"time"

	"github.com/semel-go/semel/store"
)

// Options configures a Store. Nil and the zero value are the defaults.
type Options struct {
	// Now is the store's clock. Nil: time.Now. For tests.
	Now func() time.Time
}

// How many locks the records are spread over: some for each processor, so that
// two of them seldom want the same, and no more, for each is memory to touch.
const (
	shardsEach = 8
	mostShards = 256
)

// Store keeps records in memory. Safe for concurrent use. Nothing to close. It
// keeps a copy of an outcome, and hands out that copy to each duplicate: read
// only.
type Store struct {
	now   func() time.Time
	hash  func(store.Key) uint64
	floor atomic.Uint64 // the highest fence that was ever swept
	shard []shard       // a power of two
	most  int           // bytes of an outcome
}

var _ interface {
	store.Store
	store.Lister
} = (*Store)(nil)

// New makes an empty store.
func New(o *Options) *Store {
	seed := maphash.MakeSeed()
	s := &Store{now: time.Now, most: maxOutcome, hash: func(k store.Key) uint64 { return maphash.Comparable(seed, k) }}
	if o != nil && o.Now != nil {
		s.now = o.Now
	}
	n := shardsEach
	for n < min(shardsEach*runtime.GOMAXPROCS(0), mostShards) {
		n *= 2
	}
	s.shard = make([]shard, n)
	for i := range s.shard {
		s.shard[i].held, s.shard[i].rest = map[uint64]*store.Record{}, map[uint64]place{}
	}
	return s
}

// lock returns the key's shard, locked, the key's hash, and the time: read
// under the lock, so that no change of a record is older than the one before.
func (s *Store) lock(k store.Key) (*shard, uint64, time.Time) {
	hash := s.hash(k)
	sh := &s.shard[hash&uint64(len(s.shard)-1)]
	sh.mu.Lock()
	return sh, hash, s.now()
}

// Claim implements store.Store.
func (s *Store) Claim(ctx context.Context, p store.Proposal) (store.Found, error) {
	if err := ctx.Err(); err != nil {
		return store.Found{}, err
	}
	sh, hash, now := s.lock(p.Key)
	defer sh.mu.Unlock()
	has := textsOf(&p.Key, p.Holder, &p.Fingerprint)
	var r store.Record
	if old := sh.find(hash, &p.Key, &has, &r); old != nil {
		return found(old, &p, now), nil
	}
	r = p.Insert(now, s.floor.Load())
	sh.put(hash, &r)
	return found(&r, &p, now), nil
}

// Swap implements store.Store.
func (s *Store) Swap(ctx context.Context, seen store.Seen, p store.Proposal) (store.Found, error) {
	if err := ctx.Err(); err != nil {
		return store.Found{}, err
	}
	sh, hash, now := s.lock(seen.Key)
	defer sh.mu.Unlock()
	var room store.Record
	r := sh.find(hash, &seen.Key, nil, &room)
	if r == nil {
		return store.Found{Now: clock(now)}, store.ErrNotFound
	}
	if r.Seen() == seen {
		if err := s.fits(p.State, &p.Outcome); err != nil {
			return store.Found{Now: clock(now)}, err
		}
		next := p.Replace(r, now)
		sh.remove(hash, &seen.Key)
		sh.put(hash, &next)
		r = &next
	}
	return found(r, &p, now), nil
}

// maxOutcome is well below what a row can tell the end of.
const maxOutcome = 512 << 20

// fits refuses an outcome that a row cannot hold. Only records that have ended
// have one.
func (s *Store) fits(state store.State, o *store.Outcome) error {
	if !state.Terminal() {
		return nil
	}
	n := len(o.Body)
	for i := range o.Header {
		n += len(o.Header[i].Name) + len(o.Header[i].Value)
	}
	if n > s.most {
		return fmt.Errorf("memstore: %w: %d bytes; the limit is %d", store.ErrTooLarge, n, s.most)
	}
	return nil
}

// found is the record as the sender of p sees it.
func found(r *store.Record, p *store.Proposal, now time.Time) store.Found {
	won := p.Owner != store.Owner{} && r.Owner == p.Owner && r.State == p.State
	return store.Found{Record: *r, Won: won, Now: clock(now)}
}

// Renew implements store.Store.
func (s *Store) Renew(ctx context.Context, held []store.Lease, d time.Duration) ([]error, error) {
	if err := ctx.Err(); err != nil {
		return nil, err
	}
	errs := make([]error, len(held))
	for i, l := range held {
		errs[i] = s.renew(l, d)
	}
	return errs, nil
}

func (s *Store) renew(l store.Lease, d time.Duration) error {
	sh, hash, now := s.lock(l.Key)
	defer sh.mu.Unlock()
	var room store.Record
	r := sh.find(hash, &l.Key, nil, &room)
	if r == nil || r.Lease() != l || r.State != store.Processing {
		return store.ErrLeaseLost
	}
	r.Until, r.Updated = clock(now.Add(d)), clock(now)
	if r == &room { // a copy: the claim is at rest
		sh.remove(hash, &l.Key)
		sh.put(hash, r)
	}
	return nil
}

// Settle implements store.Store.
func (s *Store) Settle(ctx context.Context, l store.Lease, t store.Settlement) error {
	if err := ctx.Err(); err != nil {
		return err
	}
	sh, hash, now := s.lock(l.Key)
	defer sh.mu.Unlock()
	var room store.Record
	r := sh.find(hash, &l.Key, nil, &room)
	switch {
	case r == nil || r.Lease() != l:
		return store.ErrLeaseLost
	case r.State == store.Processing:
		if err := s.fits(t.State, &t.Outcome); err != nil {
			return err
		}
		next := t.Apply(*r, now)
		sh.remove(hash, &l.Key)
		sh.put(hash, &next)
		return nil
	case t.Done(r):
		return nil
	}
	return store.ErrLeaseLost
}

// Get implements store.Store. The record's outcome shares the store's memory:
// read only.
func (s *Store) Get(ctx context.Context, k store.Key) (store.Found, error) {
	if err := ctx.Err(); err != nil {
		return store.Found{}, err
	}
	sh, hash, now := s.lock(k)
	defer sh.mu.Unlock()
	var room store.Record
	r := sh.find(hash, &k, nil, &room)
	if r == nil {
		return store.Found{Now: clock(now)}, store.ErrNotFound
	}
	return store.Found{Record: *r, Now: clock(now)}, nil
}

// List implements store.Lister. It copies one shard at a time.
func (s *Store) List(ctx context.Context, f store.Filter) iter.Seq2[store.Found, error] {
	return func(yield func(store.Found, error) bool) {
		given := 0
		for i := range s.shard {
			if err := ctx.Err(); err != nil {
				yield(store.Found{}, err)
				return
			}
			for _, fd := range s.shard[i].list(s.now, &f) {
				if f.Limit > 0 && given >= f.Limit || !yield(fd, nil) {
					return
				}
				given++
			}
		}
	}
}

func (sh *shard) list(clockNow func() time.Time, f *store.Filter) []store.Found {
	sh.mu.Lock()
	defer sh.mu.Unlock()
	now := clock(clockNow())
	var fs []store.Found
	for r := range sh.all(func(*store.Record) bool { return true }) {
		if f.Match(&r, now) {
			fs = append(fs, store.Found{Record: r, Now: now})
		}
	}
	return fs
}

// clock is t as records keep it.
func clock(t time.Time) time.Time { return store.Time(store.Micros(t)) }
