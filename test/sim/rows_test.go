package sim

import (
	"context"
	"iter"
	"maps"
	"time"

	"github.com/semel-go/semel/store"
)

// rows is a simple store for the scheduler's goroutine. The simulated database uses
// it, and controls give it flaws.
type rows struct {
	now   func() time.Time
	at    map[store.Key]store.Record
	floor uint64
	flaw  flaw
	n     int                             // changes, for flaws that show now and then
	swept map[store.Key]store.Fingerprint // for a flaw
	steps map[store.Key][]store.Step
}

func newRows(now func() time.Time) *rows {
	return &rows{now: now, at: map[store.Key]store.Record{}, swept: map[store.Key]store.Fingerprint{}, steps: map[store.Key][]store.Step{}}
}

func (s *rows) clock() time.Time { return store.Time(store.Micros(s.now())) }

// read is the clock that readers are told.
func (s *rows) read() time.Time {
	if s.flaw == clockAhead {
		return s.clock().Add(20 * tick)
	}
	return s.clock()
}

func (s *rows) found(r *store.Record, p *store.Proposal) store.Found {
	return store.Found{Record: *r, Won: r.Owner == p.Owner && r.State == p.State, Now: s.read()}
}

func (s *rows) Claim(_ context.Context, p store.Proposal) (store.Found, error) {
	r, ok := s.at[p.Key]
	if !ok || s.flaw == claimTwice && r.Owner != p.Owner && r.State == store.Processing {
		floor := s.floor
		if s.flaw == noFloor {
			floor = 0
		}
		r = p.Insert(s.now(), floor)
		s.at[p.Key] = r
	}
	return s.found(&r, &p), nil
}

func (s *rows) Swap(_ context.Context, seen store.Seen, p store.Proposal) (store.Found, error) {
	r, ok := s.at[seen.Key]
	if !ok {
		return store.Found{Now: s.read()}, store.ErrNotFound
	}
	is := r.Seen()
	if s.flaw == swapForgetsUntil {
		is.Until = seen.Until
	}
	if is == seen || s.flaw == swapBlind && r.Owner != p.Owner {
		old := r.Fence
		if p.Restart && s.flaw != stepsOutlive || s.flaw == takeoverDropsSteps {
			delete(s.steps, seen.Key)
		}
		r = p.Replace(&r, s.now())
		if s.flaw == sameFence {
			r.Fence = old
		}
		s.at[seen.Key] = r
	}
	return s.found(&r, &p), nil
}

func (s *rows) Renew(_ context.Context, held []store.Lease, d time.Duration) ([]error, error) {
	errs := make([]error, len(held))
	for i, l := range held {
		r, ok := s.at[l.Key]
		if !ok || r.State != store.Processing || r.Lease() != l && s.flaw != renewAny {
			errs[i] = store.ErrLeaseLost
			continue
		}
		if s.flaw == renewNothing {
			continue
		}
		r.Until, r.Updated = store.Time(store.Micros(s.now().Add(d))), s.clock()
		s.at[l.Key] = r
	}
	return errs, nil
}

func (s *rows) Settle(_ context.Context, l store.Lease, t store.Settlement) error {
	r, ok := s.at[l.Key]
	s.n++
	switch {
	case !ok && s.flaw == settleUpserts:
		r = store.Record{Key: l.Key, Owner: l.Owner, Fence: l.Fence, Created: s.clock(), Format: store.Format, Fingerprint: s.swept[l.Key]}
	case !ok:
		return store.ErrLeaseLost
	case s.flaw == settleAnyone && r.State == store.Processing, s.flaw == settleOver && (r.State == store.Processing || r.State.Terminal()):
	case r.Lease() != l:
		return store.ErrLeaseLost
	case r.State == store.Processing:
	case t.Done(&r):
		return nil
	default:
		return store.ErrLeaseLost
	}
	if s.flaw == ackLost && s.n%3 == 0 {
		return nil
	}
	s.at[l.Key] = t.Apply(r, s.now())
	return nil
}

func (s *rows) Get(_ context.Context, k store.Key) (store.Found, error) {
	r, ok := s.at[k]
	if !ok {
		return store.Found{Now: s.read()}, store.ErrNotFound
	}
	return store.Found{Record: r, Now: s.read()}, nil
}

func (s *rows) Sweep(context.Context, store.Cursor, int) (store.SweepResult, error) {
	res := store.SweepResult{Now: s.clock()}
	for k, r := range s.at {
		switch {
		case r.Expired(res.Now), s.flaw.sweeps(&r, res.Now):
			s.floor = max(s.floor, r.Fence)
			s.swept[k] = r.Fingerprint
			delete(s.at, k)
			if s.flaw != stepsOutlive {
				delete(s.steps, k)
			}
			res.Deleted++
		case r.Lapsed(res.Now):
			res.Lapsed = append(res.Lapsed, r)
		}
	}
	return res, nil
}

func (s *rows) List(_ context.Context, f store.Filter) iter.Seq2[store.Found, error] {
	return func(yield func(store.Found, error) bool) {
		for _, r := range s.at {
			if f.Match(&r, s.clock()) && !yield(store.Found{Record: r, Now: s.clock()}, nil) {
				return
			}
		}
	}
}

func (s *rows) copy() *rows {
	c := *s
	c.at, c.steps = maps.Clone(s.at), maps.Clone(s.steps)
	return &c
}

// flaw is one way to break a store.
type flaw uint8

const (
	sound flaw = iota
	settleAnyone
	settleOver
	settleUpserts
	claimTwice
	swapBlind
	swapForgetsUntil
	sweepLive
	sweepLapsed
	sweepUnknown
	sweepEarly
	noFloor
	sameFence
	renewAny
	renewNothing
	ackLost
	clockAhead
	stepsOfAnyone
	stepsOutlive
	takeoverDropsSteps
	stepLost
	flaws
)

var flawNames = [...]string{
	"sound", "a settlement compares neither owner nor fence", "a settlement overwrites an outcome", "a settlement makes a record",
	"a claim is granted twice", "a swap compares nothing", "a swap does not compare the lease's end", "a sweep removes live claims",
	"a sweep removes lapsed claims", "a sweep removes parked calls", "a sweep removes outcomes before their time", "a swept fence is forgotten",
	"a fence does not grow", "a renewal compares neither owner nor fence", "a renewal changes nothing", "a settlement is acknowledged and lost",
	"a reader's clock is ahead", "a step is recorded without its lease", "steps outlive their record", "a takeover loses the steps",
	"a step is acknowledged and lost",
}

func (f flaw) String() string { return flawNames[f] }

func (f flaw) sweeps(r *store.Record, now time.Time) bool {
	switch f {
	case sweepLive:
		return r.State == store.Processing
	case sweepLapsed:
		return r.Lapsed(now)
	case sweepUnknown:
		return r.State == store.Unknown
	case sweepEarly:
		return r.State.Terminal()
	}
	return false
}
