package nearcache

import (
	"context"
	"encoding/binary"
	"errors"
	"math/rand/v2"
	"strings"
	"sync/atomic"
	"time"

	"github.com/semel-go/semel/store"
)

// front is a fast store that processes share. All that can go wrong with it
// is a miss.
type front struct {
	st      store.Store
	timeout time.Duration
	rest    time.Duration
	until   atomic.Int64 // it is left alone until then, by the stamp's mono
}

// suffix ends the operation of what is kept in the front, so that it meets no
// record of those who use the front as a store.
const suffix = "##front"

func shelf(k store.Key) store.Key {
	k.Operation += suffix
	return k
}

// call lets fn use the front, unless it is at rest. An error sends it there,
// but for one that is an answer or its caller's.
func (f *front) call(ctx context.Context, now stamp, fn func(ctx context.Context) error) bool {
	if now.mono < f.until.Load() {
		return false
	}
	limited, cancel := context.WithTimeout(ctx, f.timeout)
	defer cancel()
	err := fn(limited)
	switch {
	case err == nil:
		return true
	case errors.Is(err, store.ErrNotFound), errors.Is(err, store.ErrLeaseLost), errors.Is(err, store.ErrTooLarge), errors.Is(err, store.ErrCorrupt), ctx.Err() != nil:
	default:
		f.until.Store(now.mono + int64(f.rest))
	}
	return false
}

// look asks the front for a key. Nil: it does not have it.
func (s *Store) look(ctx context.Context, h uint64, k store.Key, exact bool) *entry {
	asked := s.stamp()
	var f store.Found
	if !s.front.call(ctx, asked, func(ctx context.Context) (err error) {
		f, err = s.front.st.Get(ctx, shelf(k))
		return err
	}) {
		return nil
	}
	v, passed := opened(&f, k)
	if v == nil || exact && v.reckoned {
		return nil
	}
	// Two clocks that are not the store's have to agree that it is not over.
	wall := v.record.Expires.Add(-s.skew)
	if passed+drift(passed) >= v.life || !s.now().Before(wall) {
		return nil
	}
	e := keep(&v.record)
	e.hash, e.asked, e.told, e.reckoned = h, asked, asked, v.reckoned
	e.clock, e.life = v.clock.Add(passed), v.life-passed-drift(passed)
	return e
}

// opened is the envelope of k, if f is a record of the front that holds it, and
// how long ago it was sent, at most: by the front's clock since the shelf was
// claimed, which was before. A clock that went back cannot tell.
func opened(f *store.Found, k store.Key) (*envelope, time.Duration) {
	r := &f.Record
	passed := f.Now.Sub(r.Created)
	if r.Key != shelf(k) || r.Outcome.Codec != codec || passed < 0 || !worth(r, f.Now) {
		return nil, 0
	}
	v, err := decode(r.Outcome.Body)
	if err != nil || v.record.Key != k || !worth(&v.record, v.clock) {
		return nil, 0
	}
	return v, passed
}

// lease is how long a process may take to put a record on its shelf.
const lease = 10 * time.Second

// show puts an entry in the front. Its caller has its answer already, and does
// not wait for longer than the front's time limit.
func (s *Store) show(ctx context.Context, e *entry) {
	if s.front == nil {
		return
	}
	s.front.call(context.WithoutCancel(ctx), e.told, func(ctx context.Context) error {
		p := store.Proposal{Key: shelf(e.record.Key), State: store.Processing, Owner: newOwner(), Holder: "nearcache", Attempt: 1, Lease: lease, Keep: e.life}
		f, err := s.front.st.Claim(ctx, p)
		if err != nil {
			return err
		}
		if !f.Won {
			if !s.replaces(e, &f) {
				return nil
			}
			p.Restart = true
			if f, err = s.front.st.Swap(ctx, f.Record.Seen(), p); err != nil || !f.Won {
				return err
			}
		}
		// It was claimed before this stamp, so what passes from now on is less
		// than what passes since then.
		_, passed := s.stamp().since(e.asked)
		v := envelope{record: e.record, clock: e.clock.Add(passed), life: e.life - passed, reckoned: e.reckoned}
		if v.life <= 0 {
			return nil
		}
		return s.front.st.Settle(ctx, f.Record.Lease(), store.Settlement{
			State: store.Completed, Attempt: 1, Keep: v.life, Outcome: store.Outcome{Body: v.encode(), Codec: codec},
		})
	})
}

// replaces reports whether e may take the place of what is on its shelf.
func (s *Store) replaces(e *entry, f *store.Found) bool {
	switch store.Decide(&f.Record, &store.Call{Policy: f.Record.Policy, Fingerprint: f.Record.Fingerprint}, f.Now).Action {
	case store.Execute, store.TakeOver, store.ReplayFailure: // no shelf fails, but by another's sweep
		return true
	case store.Replay:
		v, _ := opened(f, e.record.Key)
		return v == nil || v.record.Fence < e.record.Fence || v.record.Fence == e.record.Fence && v.reckoned && !e.reckoned
	}
	return false // another is about it
}

// withdraw takes a key out of the front, as far as that can be reached.
func (s *Store) withdraw(ctx context.Context, k store.Key) {
	if s.front == nil {
		return
	}
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), s.front.timeout)
	defer cancel()
	if f, err := s.front.st.Get(ctx, shelf(k)); err == nil {
		s.clear(ctx, &f.Record)
	}
}

// clear makes a shelf free at once. If that fails, what is there ends by
// itself.
func (s *Store) clear(ctx context.Context, r *store.Record) {
	if !strings.HasSuffix(r.Key.Operation, suffix) {
		return // somebody else's
	}
	_, _ = s.front.st.Swap(ctx, r.Seen(), store.Proposal{Key: r.Key, State: store.Released, Owner: newOwner(), Holder: "nearcache"})
}

func newOwner() (o store.Owner) {
	binary.LittleEndian.PutUint64(o[:8], rand.Uint64())
	binary.LittleEndian.PutUint64(o[8:], rand.Uint64())
	return o
}
