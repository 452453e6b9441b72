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
	"hash/maphash"
	"iter"
	"sync"
	"sync/atomic"
	"time"

	"github.com/semel-go/semel/store"
)

// Options configures a Store. Nil and the zero value are the defaults.
type Options struct {
	// Now is the store's clock. Nil: time.Now. For tests.
	Now func() time.Time
}

// shards is how many locks the records are spread over.
const shards = 128

// Store keeps records in memory. Safe for concurrent use. Nothing to close. It
// keeps a copy of an outcome, and hands out that copy to each duplicate: read
// only.
type Store struct {
	now   func() time.Time
	seed  maphash.Seed
	floor atomic.Uint64 // the highest fence that was ever swept
	shard [shards]shard
}

type shard struct {
	mu      sync.Mutex
	records map[store.Key]*store.Record
	_       [48]byte // keeps two locks off one cache line
}

var _ interface {
	store.Store
	store.Lister
} = (*Store)(nil)

// New makes an empty store.
func New(o *Options) *Store {
	s := &Store{now: time.Now, seed: maphash.MakeSeed()}
	if o != nil && o.Now != nil {
		s.now = o.Now
	}
	for i := range s.shard {
		s.shard[i].records = map[store.Key]*store.Record{}
	}
	return s
}

// lock returns the key's shard, locked, and the time: read under the lock, so
// that no change of a record is older than the one before.
func (s *Store) lock(k store.Key) (*shard, time.Time) {
	sh := &s.shard[maphash.Comparable(s.seed, k)%shards]
	sh.mu.Lock()
	return sh, s.now()
}

// Claim implements store.Store.
func (s *Store) Claim(ctx context.Context, p store.Proposal) (store.Found, error) {
	if err := ctx.Err(); err != nil {
		return store.Found{}, err
	}
	sh, now := s.lock(p.Key)
	defer sh.mu.Unlock()
	r := sh.records[p.Key]
	if r == nil {
		p.Outcome = p.Outcome.Clone()
		made := p.Insert(now, s.floor.Load())
		r = &made
		sh.records[p.Key] = r
	}
	return found(r, &p, now), nil
}

// Swap implements store.Store.
func (s *Store) Swap(ctx context.Context, seen store.Seen, p store.Proposal) (store.Found, error) {
	if err := ctx.Err(); err != nil {
		return store.Found{}, err
	}
	sh, now := s.lock(seen.Key)
	defer sh.mu.Unlock()
	r := sh.records[seen.Key]
	if r == nil {
		return store.Found{Now: clock(now)}, store.ErrNotFound
	}
	if r.Seen() == seen {
		p.Outcome = p.Outcome.Clone()
		*r = p.Replace(r, now)
	}
	return found(r, &p, now), nil
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
	sh, now := s.lock(l.Key)
	defer sh.mu.Unlock()
	r := sh.records[l.Key]
	if r == nil || r.Lease() != l || r.State != store.Processing {
		return store.ErrLeaseLost
	}
	r.Until, r.Updated = clock(now.Add(d)), clock(now)
	return nil
}

// Settle implements store.Store.
func (s *Store) Settle(ctx context.Context, l store.Lease, t store.Settlement) error {
	if err := ctx.Err(); err != nil {
		return err
	}
	sh, now := s.lock(l.Key)
	defer sh.mu.Unlock()
	r := sh.records[l.Key]
	switch {
	case r == nil || r.Lease() != l:
		return store.ErrLeaseLost
	case r.State == store.Processing:
		t.Outcome = t.Outcome.Clone()
		*r = t.Apply(*r, now)
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
	sh, now := s.lock(k)
	defer sh.mu.Unlock()
	r := sh.records[k]
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
	for _, r := range sh.records {
		if f.Match(r, now) {
			fs = append(fs, store.Found{Record: *r, Now: now})
		}
	}
	return fs
}

// clock is t as records keep it.
func clock(t time.Time) time.Time { return store.Time(store.Micros(t)) }
