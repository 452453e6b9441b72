package verify

import (
	"bytes"
	"context"
	"errors"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"github.com/semel-go/semel/store"
	"github.com/semel-go/semel/store/memstore"
)

// The stores of this file keep a wrong copy of a promise. Each takes a sound
// store, whose clock can be moved, and spoils it.

// clockwork is a clock that a test moves.
type clockwork struct{ offset atomic.Int64 }

func (c *clockwork) now() time.Time { return time.Now().Add(time.Duration(c.offset.Load())) }

// sound is a memory store on that clock.
func (c *clockwork) sound() *sick { return &sick{Store: memstore.New(&memstore.Options{Now: c.now})} }

// grantsTwice says to every loser that it has won, too.
func grantsTwice(s *sick) {
	s.claim = func(ctx context.Context, p store.Proposal) (store.Found, error) {
		f, err := s.Store.Claim(ctx, p)
		f.Won = err == nil
		return f, err
	}
}

// looksFirst reads, and then writes whatever is there by now.
func looksFirst(s *sick) {
	s.claim = func(ctx context.Context, p store.Proposal) (store.Found, error) {
		if f, err := s.Store.Get(ctx, p.Key); err == nil {
			return f, nil
		}
		pause(ctx, time.Millisecond)
		f, err := s.Store.Claim(ctx, p)
		if err == nil && !f.Won {
			return s.Store.Swap(ctx, f.Record.Seen(), p)
		}
		return f, err
	}
}

// forgetsItself does not know a claim or a swap that comes again.
func forgetsItself(s *sick) {
	var seen sync.Map
	first := func(f store.Found, err error, o store.Owner) (store.Found, error) {
		if _, again := seen.LoadOrStore(o, true); again {
			f.Won = false
		}
		return f, err
	}
	s.claim = func(ctx context.Context, p store.Proposal) (store.Found, error) {
		f, err := s.Store.Claim(ctx, p)
		return first(f, err, p.Owner)
	}
	s.swap = func(ctx context.Context, seen store.Seen, p store.Proposal) (store.Found, error) {
		f, err := s.Store.Swap(ctx, seen, p)
		return first(f, err, p.Owner)
	}
}

// swapsBlindly compares nothing.
func swapsBlindly(s *sick) {
	s.swap = func(ctx context.Context, seen store.Seen, p store.Proposal) (store.Found, error) {
		f, err := s.Store.Get(ctx, seen.Key)
		if err != nil {
			return f, err
		}
		return s.Store.Swap(ctx, f.Record.Seen(), p)
	}
}

// swapsByState compares the state, and not the owner and the fence.
func swapsByState(s *sick) {
	s.swap = func(ctx context.Context, seen store.Seen, p store.Proposal) (store.Found, error) {
		f, err := s.Store.Get(ctx, seen.Key)
		if err != nil || f.Record.State != seen.State {
			return f, err
		}
		return s.Store.Swap(ctx, f.Record.Seen(), p)
	}
}

// settlesAnybody does not compare owner and fence.
func settlesAnybody(s *sick) {
	s.settle = func(ctx context.Context, l store.Lease, t store.Settlement) error {
		if f, err := s.Store.Get(ctx, l.Key); err == nil {
			l = f.Record.Lease()
		}
		return s.Store.Settle(ctx, l, t)
	}
}

// settlesAgain writes over what is settled.
func settlesAgain(s *sick) {
	s.settle = func(ctx context.Context, l store.Lease, t store.Settlement) error {
		err := s.Store.Settle(ctx, l, t)
		f, gerr := s.Store.Get(ctx, l.Key)
		if !errors.Is(err, store.ErrLeaseLost) || gerr != nil || f.Record.Lease() != l {
			return err
		}
		_, err = s.Store.Swap(ctx, f.Record.Seen(), store.Proposal{Key: l.Key, State: t.State, Owner: l.Owner, Outcome: t.Outcome, Keep: t.Keep, Attempt: t.Attempt, Error: t.Error})
		return err
	}
}

// settlesOnce refuses a settlement that comes again.
func settlesOnce(s *sick) {
	s.settle = func(ctx context.Context, l store.Lease, t store.Settlement) error {
		if f, err := s.Store.Get(ctx, l.Key); err == nil && f.Record.State != store.Processing {
			return store.ErrLeaseLost
		}
		return s.Store.Settle(ctx, l, t)
	}
}

// settlesNothing says yes and does nothing.
func settlesNothing(s *sick) {
	s.settle = func(context.Context, store.Lease, store.Settlement) error { return nil }
}

// upserts makes the record that a late settlement does not find.
func upserts(s *sick) {
	s.settle = func(ctx context.Context, l store.Lease, t store.Settlement) error {
		if _, err := s.Store.Get(ctx, l.Key); errors.Is(err, store.ErrNotFound) {
			_, err = s.Store.Claim(ctx, store.Proposal{Key: l.Key, State: t.State, Owner: l.Owner, Keep: t.Keep, Outcome: t.Outcome})
			return err
		}
		return s.Store.Settle(ctx, l, t)
	}
}

// renewsAnybody does not compare owner and fence.
func renewsAnybody(s *sick) {
	s.renew = func(ctx context.Context, held []store.Lease, d time.Duration) ([]error, error) {
		for i := range held {
			if f, err := s.Store.Get(ctx, held[i].Key); err == nil {
				held = slices.Clone(held)
				held[i] = f.Record.Lease()
			}
		}
		return s.Store.Renew(ctx, held, d)
	}
}

// renewsLong adds the lease to its end, instead of to the time that it is.
func renewsLong(s *sick) {
	s.renew = func(ctx context.Context, held []store.Lease, d time.Duration) ([]error, error) {
		return s.Store.Renew(ctx, held, 2*d)
	}
}

// oneFence has the same fence for all.
func oneFence(s *sick) {
	const fence = 7
	flat := func(f store.Found, err error) (store.Found, error) {
		f.Record.Fence = fence
		return f, err
	}
	real := func(ctx context.Context, k store.Key) uint64 {
		f, _ := s.Store.Get(ctx, k)
		return f.Record.Fence
	}
	s.claim = func(ctx context.Context, p store.Proposal) (store.Found, error) { return flat(s.Store.Claim(ctx, p)) }
	s.get = func(ctx context.Context, k store.Key) (store.Found, error) { return flat(s.Store.Get(ctx, k)) }
	s.swap = func(ctx context.Context, seen store.Seen, p store.Proposal) (store.Found, error) {
		seen.Fence = real(ctx, seen.Key)
		return flat(s.Store.Swap(ctx, seen, p))
	}
	s.settle = func(ctx context.Context, l store.Lease, t store.Settlement) error {
		l.Fence = real(ctx, l.Key)
		return s.Store.Settle(ctx, l, t)
	}
	s.renew = func(ctx context.Context, held []store.Lease, d time.Duration) ([]error, error) {
		held = slices.Clone(held)
		for i := range held {
			held[i].Fence = real(ctx, held[i].Key)
		}
		return s.Store.Renew(ctx, held, d)
	}
}

// keepsHalf ends a retention early.
func keepsHalf(s *sick) {
	s.settle = func(ctx context.Context, l store.Lease, t store.Settlement) error {
		t.Keep /= 2
		return s.Store.Settle(ctx, l, t)
	}
}

// sweepsEarly removes what is kept for less than another hour. Its clock is an
// hour ahead meanwhile.
func sweepsEarly(c *clockwork, ahead time.Duration) func(*sick) {
	return func(s *sick) {
		s.sweep = func(ctx context.Context, from store.Cursor, limit int) (store.SweepResult, error) {
			c.offset.Add(int64(ahead))
			defer c.offset.Add(-int64(ahead))
			return s.Store.Sweep(ctx, from, limit)
		}
	}
}

// sweepsNothing says that it is done.
func sweepsNothing(s *sick) {
	s.sweep = func(context.Context, store.Cursor, int) (store.SweepResult, error) {
		return store.SweepResult{Now: time.Now()}, nil
	}
}

// sweepsStates removes whatever is in one of the states and, but for parked
// ones, whose end has passed.
func sweepsStates(states ...store.State) func(*sick) {
	return func(s *sick) {
		s.sweep = func(ctx context.Context, from store.Cursor, limit int) (store.SweepResult, error) {
			for f := range s.Store.List(ctx, store.Filter{States: states}) {
				if r := &f.Record; r.State == store.Unknown || r.Lapsed(f.Now) {
					p := store.Proposal{Key: r.Key, State: store.Released, Owner: r.Owner}
					if _, err := s.Store.Swap(ctx, r.Seen(), p); err != nil {
						return store.SweepResult{}, err
					}
				}
			}
			return s.Store.Sweep(ctx, from, limit)
		}
	}
}

// handsNothingBack leaves lapsed records to nobody.
func handsNothingBack(s *sick) {
	s.sweep = func(ctx context.Context, from store.Cursor, limit int) (store.SweepResult, error) {
		res, err := s.Store.Sweep(ctx, from, limit)
		res.Lapsed = nil
		return res, err
	}
}

// freesState lets a claim win over a record in the state, once its end has
// passed.
func freesState(state store.State) func(*sick) {
	return func(s *sick) {
		s.claim = func(ctx context.Context, p store.Proposal) (store.Found, error) {
			f, err := s.Store.Claim(ctx, p)
			if err == nil && !f.Won && f.Record.State == state && !f.Now.Before(f.Record.Until) {
				return s.Store.Swap(ctx, f.Record.Seen(), p)
			}
			return f, err
		}
	}
}

// spoils changes each record that is read.
func spoils(change func(r *store.Record)) func(*sick) {
	return func(s *sick) {
		s.get = func(ctx context.Context, k store.Key) (store.Found, error) {
			f, err := s.Store.Get(ctx, k)
			f.Record.Outcome = f.Record.Outcome.Clone()
			change(&f.Record)
			return f, err
		}
		s.claim = func(ctx context.Context, p store.Proposal) (store.Found, error) {
			f, err := s.Store.Claim(ctx, p)
			f.Record.Outcome = f.Record.Outcome.Clone()
			change(&f.Record)
			return f, err
		}
	}
}

// noHeader and the functions below change a record as a wrong column type would.
func noHeader(r *store.Record) { r.Outcome.Header = nil }

func sortedHeader(r *store.Record) {
	slices.SortFunc(r.Outcome.Header, func(a, b store.Header) int { return strings.Compare(a.Name+a.Value, b.Name+b.Value) })
}

func textHeader(r *store.Record) {
	for i := range r.Outcome.Header {
		r.Outcome.Header[i].Value = strings.ToValidUTF8(r.Outcome.Header[i].Value, "?")
	}
}

func shortBody(r *store.Record) { r.Outcome.Body = r.Outcome.Body[:min(len(r.Outcome.Body), 1<<16)] }

func cBody(r *store.Record) { r.Outcome.Body, _, _ = bytes.Cut(r.Outcome.Body, []byte{0}) }

func noFingerprint(r *store.Record) { r.Fingerprint = store.Fingerprint{} }

func textSum(r *store.Record) { r.Fingerprint.Sum = strings.ToValidUTF8(r.Fingerprint.Sum, "") }

func shortHolder(r *store.Record) { r.Holder = r.Holder[:min(len(r.Holder), 64)] }

func noOutcome(r *store.Record) { r.Outcome = store.Outcome{} }

// mixesUp takes keys for one that same makes equal.
func mixesUp(same func(k store.Key) store.Key) func(*sick) {
	return func(s *sick) {
		var names sync.Map // the first request
		back := func(f store.Found, err error) (store.Found, error) {
			if k, ok := names.Load(f.Record.Key); ok {
				f.Record.Key, _ = k.(store.Key)
			}
			return f, err
		}
		one := func(k store.Key) store.Key { return same(k) }
		s.claim = func(ctx context.Context, p store.Proposal) (store.Found, error) {
			names.LoadOrStore(one(p.Key), p.Key)
			p.Key = one(p.Key)
			return back(s.Store.Claim(ctx, p))
		}
		s.get = func(ctx context.Context, k store.Key) (store.Found, error) { return back(s.Store.Get(ctx, one(k))) }
		s.swap = func(ctx context.Context, seen store.Seen, p store.Proposal) (store.Found, error) {
			seen.Key, p.Key = one(seen.Key), one(p.Key)
			return back(s.Store.Swap(ctx, seen, p))
		}
		s.settle = func(ctx context.Context, l store.Lease, t store.Settlement) error {
			l.Key = one(l.Key)
			return s.Store.Settle(ctx, l, t)
		}
	}
}

func valueOnly(change func(string) string) func(store.Key) store.Key {
	return func(k store.Key) store.Key {
		k.Value = change(k.Value)
		return k
	}
}

// ahead answers with a time that is not the one that it writes.
func ahead(d time.Duration) func(*sick) {
	return func(s *sick) {
		s.get = func(ctx context.Context, k store.Key) (store.Found, error) {
			f, err := s.Store.Get(ctx, k)
			f.Now = f.Now.Add(d)
			return f, err
		}
		s.claim = func(ctx context.Context, p store.Proposal) (store.Found, error) {
			f, err := s.Store.Claim(ctx, p)
			f.Now = f.Now.Add(d)
			return f, err
		}
	}
}

// stops is a clock that stands still.
func stops(at time.Time) func(*sick) {
	return func(s *sick) {
		s.Store = memstore.New(&memstore.Options{Now: func() time.Time { return at }})
	}
}
