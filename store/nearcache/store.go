package nearcache

import (
	"context"
	"errors"
	"time"

	"github.com/semel-go/semel/store"
)

// Store is a cache in front of a store, and a store itself. Make it with New.
// Safe for concurrent use; it starts no goroutine. Unwrap returns its
// store. All callers share the body and the header of a cached outcome:
// treat them as read-only.
type Store struct {
	st     store.Store
	maxAge time.Duration
	skew   time.Duration
	now    func() time.Time
	start  time.Time
	hash   func(k store.Key) uint64
	shards []shard
	front  *front // nil: there is none
}

var _ interface {
	store.Store
	store.Eraser
	store.Receiver
} = (*Store)(nil)

// Unwrap returns the cached store.
func (s *Store) Unwrap() store.Store { return s.st }

// Claim implements store.Store. A duplicate of a cached key is answered without
// asking the store.
func (s *Store) Claim(ctx context.Context, p store.Proposal) (store.Found, error) {
	l, f, err := s.lookup(ctx, p.Key, false)
	if err != nil || l.hit {
		return f, err
	}
	f, err = s.st.Claim(ctx, p)
	if err == nil && f.Record.Key == p.Key {
		s.cache(ctx, &l, &f)
	}
	return f, err
}

// Get implements store.Store. It uses a cached record only if the store
// returned it.
func (s *Store) Get(ctx context.Context, k store.Key) (store.Found, error) {
	l, f, err := s.lookup(ctx, k, true)
	if err != nil || l.hit {
		return f, err
	}
	f, err = s.st.Get(ctx, k)
	if errors.Is(err, store.ErrNotFound) || err == nil && f.Record.Key == k && !s.cache(ctx, &l, &f) {
		l.shard.removeEstimated(l.hash, &k)
	}
	return f, err
}

// lookup is one search for a key. The epoch lets the shard refuse what the
// store answered before a later removal.
type lookup struct {
	shard *shard
	hash  uint64
	epoch uint64
	asked stamp // before the store is asked
	hit   bool
}

// lookup searches for a key in memory and then in the front. Exact: only a
// record that the store returned will do.
func (s *Store) lookup(ctx context.Context, k store.Key, exact bool) (lookup, store.Found, error) {
	if err := ctx.Err(); err != nil {
		return lookup{}, store.Found{}, err
	}
	l := lookup{asked: s.stamp()}
	l.shard, l.hash = s.shardOf(k)
	e, epoch, claimed := l.shard.find(l.hash, &k, l.asked, exact)
	if l.epoch = epoch; e == nil && !claimed && s.front != nil {
		if e = s.readFront(ctx, k, exact); e != nil {
			e.hash = l.hash
			l.shard.put(e, epoch, e.asked)
		}
		l.asked = s.stamp()
	}
	if e == nil {
		return l, store.Found{}, nil
	}
	l.hit = true
	return l, e.found(l.asked), nil
}

// Swap implements store.Store. It removes the key from the cache and from the
// front, whatever the store answers, because the swap may have been applied.
func (s *Store) Swap(ctx context.Context, seen store.Seen, p store.Proposal) (f store.Found, err error) {
	l := lookup{asked: s.stamp()}
	l.shard, l.hash = s.shardOf(seen.Key)
	defer func() { // also if the store panics
		l.epoch = l.shard.invalidate(l.hash)
		if seen.State.Terminal() { // other records are not in the front
			s.markSwapped(ctx, &seen)
		}
		if err == nil && f.Won && f.Record.Key == seen.Key {
			s.cacheClaim(&l, &f)
		}
	}()
	f, err = s.st.Swap(ctx, seen, p)
	return f, err
}

// Erase implements store.Eraser. It removes the key from the cache, and the answer from the
// front, whatever the store answers, because the record may have been erased. The caches
// of other processes keep the answer for MaxAge at most. In the front a mark stays,
// without the answer, until a sweep of the front.
func (s *Store) Erase(ctx context.Context, seen store.Seen) error {
	inner, ok := store.As[store.Eraser](s.st)
	if !ok {
		return errors.ErrUnsupported
	}
	shard, hash := s.shardOf(seen.Key)
	defer func() { // also if the store panics
		shard.invalidate(hash)
		if seen.State.Terminal() { // other records are not in the front
			s.markSwapped(ctx, &seen)
		}
	}()
	return inner.Erase(ctx, seen)
}

// Renew implements store.Store.
func (s *Store) Renew(ctx context.Context, leases []store.Lease, d time.Duration) ([]error, error) {
	return s.st.Renew(ctx, leases, d)
}

// Settle implements store.Store. It caches the outcome of a claim that this
// process won, once the store has confirmed it.
func (s *Store) Settle(ctx context.Context, lease store.Lease, t store.Settlement) error {
	l := lookup{asked: s.stamp()}
	l.shard, l.hash = s.shardOf(lease.Key)
	if err := s.st.Settle(ctx, lease, t); err != nil {
		l.shard.setSettling(l.hash, &lease, l.asked)
		return err
	}
	claim, epoch := l.shard.takeClaim(l.hash, &lease)
	if claim == nil {
		return nil
	}
	first := l.asked
	if claim.settling != (stamp{}) {
		first = claim.settling
	}
	// The store settled it at first or later, so the times that are estimated
	// here are not later than the store's.
	least, _ := first.since(claim.answered)
	now := claim.clock.Add(least - drift(least))
	r := t.Apply(claim.record, now)
	if !replayable(&r, now) {
		return nil
	}
	e := newEntry(&r)
	e.hash, e.asked, e.answered, e.clock, e.estimated = l.hash, claim.asked, l.asked, claim.clock, true
	if e.life = s.lifetime(e, l.asked); e.life > 0 {
		l.shard.put(e, epoch, l.asked)
		s.writeFront(ctx, e)
	}
	return nil
}

// cache keeps the store's answer, if it is a claim of this process or a record
// to replay, and reports whether it is the latter.
func (s *Store) cache(ctx context.Context, l *lookup, f *store.Found) bool {
	if f.Won {
		s.cacheClaim(l, f)
		return false
	}
	if !replayable(&f.Record, f.Now) {
		return false
	}
	e := s.entry(l, f)
	if e.life = s.lifetime(e, l.asked); e.life <= 0 {
		return false
	}
	l.shard.put(e, l.epoch, e.answered)
	s.writeFront(ctx, e)
	return true
}

// cacheClaim keeps a claim that was won, so that Settle can cache its outcome.
func (s *Store) cacheClaim(l *lookup, f *store.Found) {
	if f.Record.State == store.Processing {
		e := s.entry(l, f)
		e.ownClaim = true
		l.shard.put(e, l.epoch, e.answered)
	}
}

func (s *Store) entry(l *lookup, f *store.Found) *entry {
	e := newEntry(&f.Record)
	e.hash, e.asked, e.answered, e.clock = l.hash, l.asked, s.stamp(), f.Now
	return e
}

// lifetime is how long after e.asked a record may be used that the store
// confirmed at confirmed.
func (s *Store) lifetime(e *entry, confirmed stamp) time.Duration {
	least, _ := confirmed.since(e.asked)
	left := e.record.Expires.Sub(e.clock)
	return min(left-drift(left)-s.skew, least+s.maxAge)
}
