package semel

import (
	"context"
	"errors"
	"time"

	"github.com/semel-go/semel/store"
)

// settle stores how a claim ended: again and again until the store answers or
// SettleTimeout is over, for the same settlement again is harmless. The
// caller's cancellation does not reach it: a client that hung up is just the
// one that will call again.
func (g *Guard) settle(ctx context.Context, x *Execution, s store.Settlement) error {
	if s.State.Terminal() {
		s.Attempt = x.attempt
	}
	c := &x.grace
	if x.graced.Swap(true) { // it settles for the second time, after Complete
		c = &grace{}
	}
	c.begin(ctx, g.opt.SettleTimeout)
	defer c.stop()
	return g.settleUntil(c, x.lease, s)
}

func (g *Guard) settleUntil(ctx context.Context, l store.Lease, s store.Settlement) error {
	for wait := 10 * time.Millisecond; ; wait = min(2*wait, time.Second) {
		err := g.st.Settle(ctx, l, s)
		switch {
		case err == nil || answered(err):
			return err
		case errors.Is(err, store.ErrTooLarge) && !s.Outcome.Equal(tombstone(s.Outcome)):
			s.Outcome = tombstone(s.Outcome)
		case !pause(ctx, wait):
			return err
		}
	}
}

// tombstone is what a store keeps of an outcome that is too large for it.
func tombstone(o Outcome) Outcome { return Outcome{Code: o.Code, Codec: o.Codec, Gone: true} }

// giveBack undoes a claim whose handler did not start, in the background: the
// record goes to the state undo.
func (g *Guard) giveBack(ctx context.Context, r *store.Record, undo store.State) {
	grace := g.detached(ctx)
	record := *r
	go func() {
		defer grace.stop()
		g.release(grace, &record, undo)
	}()
}

// maxAbandoned bounds the claims that a Guard sends again in the background
// during an outage.
const maxAbandoned = 1024

// abandon is giveBack for a claim of which no answer came: it is sent again,
// which tells whether it was won, and then undone. seen is nil for a claim
// that inserts.
func (g *Guard) abandon(ctx context.Context, seen *store.Seen, p store.Proposal, undo store.State) {
	if g.abandoned.Add(1) > maxAbandoned {
		g.abandoned.Add(-1)
		return // the lease lapses by itself, which only takes longer
	}
	grace := g.detached(ctx)
	go func() {
		defer g.abandoned.Add(-1)
		defer grace.stop()
		for wait := 50 * time.Millisecond; ; wait = min(2*wait, time.Second) {
			f, err := g.again(grace, seen, p)
			if err == nil && f.Won {
				g.release(grace, &f.Record, undo)
			}
			if err == nil || answered(err) || !pause(grace, wait) {
				return // no answer to the end: the lease lapses by itself
			}
		}
	}()
}

func (g *Guard) again(ctx context.Context, seen *store.Seen, p store.Proposal) (store.Found, error) {
	if seen == nil {
		return g.st.Claim(ctx, p)
	}
	return g.st.Swap(ctx, *seen, p)
}

// release gives the attempt back, too, if a handler was to start.
func (g *Guard) release(ctx context.Context, r *store.Record, undo store.State) {
	s := store.Settlement{State: undo, Attempt: r.Attempt, Error: r.LastError, Keep: g.opt.Retention}
	if undo == store.Released {
		s.Attempt, s.Error = max(0, r.Attempt-1), "the caller left before the handler started"
	}
	err := g.settleUntil(ctx, r.Lease(), s)
	g.observe(ctx, Event{Kind: EventAbandoned, Policy: r.Policy, Attempt: r.Attempt, Err: err}, r.Key)
	g.watch.wake(r.Key)
}
