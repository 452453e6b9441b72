package semel

import (
	"context"
	"errors"
	"time"

	"github.com/semel-go/semel/internal/retry"
	"github.com/semel-go/semel/store"
)

// settleContext is for work that must end although the caller has left. It keeps
// the values of ctx, but neither its end nor its cause.
func (g *Guard) settleContext(ctx context.Context) (context.Context, context.CancelFunc) {
	return context.WithTimeout(context.WithoutCancel(ctx), g.options.SettleTimeout)
}

// settle stores how a claim ended. It repeats the settlement, which is harmless,
// until the store answers or SettleTimeout has passed. The caller's cancellation
// does not stop it, because a client that hung up is the one that calls again.
func (g *Guard) settle(ctx context.Context, x *Execution, s store.Settlement) error {
	if s.State.Terminal() {
		s.Attempt = x.attempt
	}
	ctx, cancel := g.settleContext(ctx)
	defer cancel()
	return g.settleUntil(ctx, x.lease, s)
}

func (g *Guard) settleUntil(ctx context.Context, l store.Lease, s store.Settlement) error {
	for wait := 10 * time.Millisecond; ; wait = min(2*wait, time.Second) {
		err := g.store.Settle(ctx, l, s)
		switch {
		case err == nil || retry.Answered(err):
			return err
		case errors.Is(err, store.ErrTooLarge) && !s.Outcome.Equal(tombstone(s.Outcome)):
			s.Outcome = tombstone(s.Outcome)
		case !retry.Pause(ctx, wait):
			return err
		}
	}
}

// tombstone is what a store keeps of an outcome that is too large for it.
func tombstone(o store.Outcome) store.Outcome {
	return store.Outcome{Code: o.Code, Codec: o.Codec, Gone: true}
}

// giveBack undoes a claim whose handler did not start, in the background. The
// record returns to the given state.
func (g *Guard) giveBack(ctx context.Context, r *store.Record, state store.State) {
	ctx, cancel := g.settleContext(ctx)
	record := *r
	go func() {
		defer cancel()
		g.undoClaim(ctx, &record, state)
	}()
}

// maxUnanswered bounds the unanswered claims that a Guard sends again in the
// background during an outage.
const maxUnanswered = 1024

// giveBackUnanswered is giveBack for a claim that got no answer. It sends the
// claim again, which tells whether it was won, and then undoes it. seen is nil
// for a claim that inserts.
func (g *Guard) giveBackUnanswered(ctx context.Context, seen *store.Seen, p store.Proposal, state store.State) {
	if g.unanswered.Add(1) > maxUnanswered {
		g.unanswered.Add(-1)
		return // the lease expires by itself, which only takes longer
	}
	ctx, cancel := g.settleContext(ctx)
	go func() {
		defer g.unanswered.Add(-1)
		defer cancel()
		for wait := 50 * time.Millisecond; ; wait = min(2*wait, time.Second) {
			f, err := g.sendAgain(ctx, seen, p)
			if err == nil && f.Won {
				g.undoClaim(ctx, &f.Record, state)
			}
			if err == nil || retry.Answered(err) || !retry.Pause(ctx, wait) {
				return // without an answer the lease expires by itself
			}
		}
	}()
}

func (g *Guard) sendAgain(ctx context.Context, seen *store.Seen, p store.Proposal) (store.Found, error) {
	if seen == nil {
		return g.store.Claim(ctx, p)
	}
	return g.store.Swap(ctx, *seen, p)
}

// undoClaim returns a claimed record to a state. If a handler was to start, it
// gives the attempt back, too.
func (g *Guard) undoClaim(ctx context.Context, r *store.Record, state store.State) {
	s := store.Settlement{State: state, Attempt: r.Attempt, Error: r.LastError, Keep: g.options.Retention}
	if state == store.Released {
		s.Attempt, s.Error = max(0, r.Attempt-1), "the caller left before the handler started"
	}
	err := g.settleUntil(ctx, r.Lease(), s)
	kind := EventReleased
	if state == store.Unknown {
		kind = EventParked
	}
	g.observe(ctx, Event{Kind: kind, Policy: r.Policy, Attempt: r.Attempt, Err: err}, r.Key)
	g.waiters.wake(r.Key)
}
