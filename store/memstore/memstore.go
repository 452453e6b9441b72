// Package memstore keeps records in the memory of one process. It is the
// reference for the behavior of a store, and tests compare other stores with it.
//
// It keeps every promise of package store except durability: when the process
// ends, every record is gone, and each operation may run once more. Use it for
// tests, and for work whose duplicates cannot outlive the process. Never use it
// with more than one replica of a service.
package memstore

import (
	"context"
	"iter"
	"slices"
	"sync"
	"time"

	"github.com/semel-go/semel/store"
)

// Options configures a Store. Nil and the zero value mean the defaults.
type Options struct {
	// Now is the store's clock. Nil: time.Now. For tests.
	Now func() time.Time
}

// Store keeps records in memory. It is safe for concurrent use, and there is
// nothing to close. It copies an outcome when it stores it, and every Get and
// Claim returns that same copy: treat it as read-only.
type Store struct {
	clock func() time.Time

	mu         sync.Mutex
	records    map[store.Key]*record
	timers     map[store.Key]store.Timer
	sweptFence uint64 // the highest fence of the records that a sweep or Erase deleted
}

// record is a record with the steps of its call.
type record struct {
	store.Record
	steps []store.Step
}

var _ interface {
	store.Store
	store.Lister
	store.Journal
	store.Timers
	store.Eraser
	store.Receiver
} = (*Store)(nil)

// New makes an empty store.
func New(o *Options) *Store {
	s := &Store{clock: time.Now, records: map[store.Key]*record{}}
	if o != nil && o.Now != nil {
		s.clock = o.Now
	}
	return s
}

// now is the time as records keep it. Methods read it under the lock, so that
// no change of a record is older than the change before it.
func (s *Store) now() time.Time { return store.Time(store.Micros(s.clock())) }

// put stores a record that shares no memory with the caller's.
func (s *Store) put(r store.Record, steps []store.Step) *record {
	r.Outcome, r.FormerOwners = r.Outcome.Clone(), slices.Clone(r.FormerOwners)
	kept := &record{r, steps}
	s.records[r.Key] = kept
	return kept
}

// Claim implements store.Store.
func (s *Store) Claim(ctx context.Context, p store.Proposal) (store.Found, error) {
	if err := ctx.Err(); err != nil {
		return store.Found{}, err
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	now := s.now()
	r, exists := s.records[p.Key]
	if !exists {
		r = s.put(p.Insert(now, s.sweptFence), nil)
	}
	return p.Found(&r.Record, now), nil
}

// Swap implements store.Store.
func (s *Store) Swap(ctx context.Context, seen store.Seen, p store.Proposal) (store.Found, error) {
	if err := ctx.Err(); err != nil {
		return store.Found{}, err
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	now := s.now()
	r, exists := s.records[seen.Key]
	if !exists {
		return store.Found{Now: now}, store.ErrNotFound
	}
	if r.Seen() == seen {
		steps := r.steps
		if p.Restart {
			steps = nil
		}
		r = s.put(p.Replace(&r.Record, now), steps)
	}
	return p.Found(&r.Record, now), nil
}

// Renew implements store.Store.
func (s *Store) Renew(ctx context.Context, leases []store.Lease, d time.Duration) ([]error, error) {
	if err := ctx.Err(); err != nil {
		return nil, err
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	now := s.now()
	errs := make([]error, len(leases))
	for i, lease := range leases {
		r, exists := s.records[lease.Key]
		if !exists || r.Lease() != lease || r.State != store.Processing {
			errs[i] = store.ErrLeaseLost
			continue
		}
		r.Until, r.Updated = store.Time(store.Micros(now.Add(d))), now
	}
	return errs, nil
}

// Settle implements store.Store.
func (s *Store) Settle(ctx context.Context, l store.Lease, t store.Settlement) error {
	if err := ctx.Err(); err != nil {
		return err
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	r, exists := s.records[l.Key]
	switch {
	case !exists || r.Lease() != l:
		return store.ErrLeaseLost
	case r.State == store.Processing:
		s.put(t.Apply(r.Record, s.now()), r.steps)
		return nil
	case t.Done(&r.Record):
		return nil
	}
	return store.ErrLeaseLost
}

// Get implements store.Store.
func (s *Store) Get(ctx context.Context, k store.Key) (store.Found, error) {
	if err := ctx.Err(); err != nil {
		return store.Found{}, err
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	now := s.now()
	r, exists := s.records[k]
	if !exists {
		return store.Found{Now: now}, store.ErrNotFound
	}
	return store.Found{Record: r.Record, Now: now}, nil
}

// List implements store.Lister. It copies the selected records before it yields
// the first one.
func (s *Store) List(ctx context.Context, f store.Filter) iter.Seq2[store.Found, error] {
	return func(yield func(store.Found, error) bool) {
		if err := ctx.Err(); err != nil {
			yield(store.Found{}, err)
			return
		}
		for _, found := range s.matching(&f) {
			if !yield(found, nil) {
				return
			}
		}
	}
}

func (s *Store) matching(f *store.Filter) (matches []store.Found) {
	s.mu.Lock()
	defer s.mu.Unlock()
	now := s.now()
	for _, r := range s.records {
		if f.Limit > 0 && len(matches) == f.Limit {
			break
		}
		if f.Match(&r.Record, now) {
			matches = append(matches, store.Found{Record: r.Record, Now: now})
		}
	}
	return matches
}
