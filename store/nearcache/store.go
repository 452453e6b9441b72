package nearcache

import (
	"context"
	"errors"
	"time"

	"github.com/semel-go/semel/store"
)

// Store is a cache in front of a store, and a store itself. Safe for
// concurrent use; no goroutine runs behind it. What else the store can do is
// found through Unwrap. The body and the header of an outcome are shared by
// all to whom it is handed: read only. Only New makes one; the zero Store is
// invalid.
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

var _ store.Store = (*Store)(nil)

// Unwrap is the store behind the cache.
func (s *Store) Unwrap() store.Store { return s.st }

// Claim implements store.Store. A duplicate of what is kept is answered
// without asking the store; all else is the store's to say.
func (s *Store) Claim(ctx context.Context, p store.Proposal) (store.Found, error) {
	q, f, err := s.ask(ctx, p.Key, false)
	if err != nil || q.answered {
		return f, err
	}
	f, err = s.st.Claim(ctx, p)
	if err == nil && f.Record.Key == p.Key {
		s.fill(ctx, &q, &f)
	}
	return f, err
}

// Get implements store.Store, from what is kept if the store has given that.
func (s *Store) Get(ctx context.Context, k store.Key) (store.Found, error) {
	q, f, err := s.ask(ctx, k, true)
	if err != nil || q.answered {
		return f, err
	}
	f, err = s.st.Get(ctx, k)
	if errors.Is(err, store.ErrNotFound) || err == nil && f.Record.Key == k && !s.fill(ctx, &q, &f) {
		q.sh.contradict(q.h, &k)
	}
	return f, err
}

// question is one about a key.
type question struct {
	sh       *shard
	h        uint64
	epoch    uint64
	asked    stamp // before the store is asked, if it has to be
	answered bool
}

// ask looks for a key in what is kept here, and then in the front.
func (s *Store) ask(ctx context.Context, k store.Key, exact bool) (question, store.Found, error) {
	if err := ctx.Err(); err != nil {
		return question{}, store.Found{}, err
	}
	q := question{asked: s.stamp()}
	q.sh, q.h = s.at(k)
	e, epoch, busy := q.sh.find(q.h, &k, q.asked, exact)
	if q.epoch = epoch; e == nil && !busy && s.front != nil {
		if e = s.look(ctx, q.h, k, exact); e != nil {
			q.sh.put(e, epoch, e.asked)
		}
		q.asked = s.stamp()
	}
	if e == nil {
		return q, store.Found{}, nil
	}
	q.answered = true
	return q, e.found(q.asked), nil
}

// Swap implements store.Store. What is kept of the key is removed, whatever
// the answer: it may have been applied.
func (s *Store) Swap(ctx context.Context, seen store.Seen, p store.Proposal) (store.Found, error) {
	q := question{asked: s.stamp()}
	q.sh, q.h = s.at(seen.Key)
	var f store.Found
	var err error
	defer func() { // also if the store panics
		q.epoch = q.sh.drop(q.h)
		if seen.State.Terminal() { // else the front has nothing
			s.withdraw(ctx, seen.Key)
		}
		if err == nil && f.Won && f.Record.Key == seen.Key {
			s.remember(&q, &f)
		}
	}()
	f, err = s.st.Swap(ctx, seen, p)
	return f, err
}

// Renew implements store.Store.
func (s *Store) Renew(ctx context.Context, held []store.Lease, d time.Duration) ([]error, error) {
	return s.st.Renew(ctx, held, d)
}

// Settle implements store.Store. When the store has confirmed the outcome of a
// claim that this process won, it is kept.
func (s *Store) Settle(ctx context.Context, l store.Lease, t store.Settlement) error {
	asked := s.stamp()
	if err := s.st.Settle(ctx, l, t); err != nil {
		return err
	}
	sh, h := s.at(l.Key)
	if e, epoch := sh.own(h, &l); e != nil {
		s.settled(ctx, &question{sh: sh, h: h, epoch: epoch, asked: asked}, e, &t)
	}
	return nil
}
