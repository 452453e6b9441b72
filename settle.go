package semel

import (
	"context"
	"errors"
	"time"

	"github.com/semel-go/semel/internal/protocol"
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
	g.heartbeat.setSettling(x.renewal, true)
	err := g.settleUntil(ctx, x.lease, s)
	if errors.Is(err, store.ErrLeaseLost) {
		g.heartbeat.setSettling(x.renewal, false) // another process has the lease
	}
	return err
}

// settleUntil sends a settlement until the store answers or ctx ends.
func (g *Guard) settleUntil(ctx context.Context, l store.Lease, s store.Settlement) error {
	return g.sendUntil(ctx, &s.Outcome, func(ctx context.Context) error { return g.store.Settle(ctx, l, s) })
}

// sendUntil repeats a change, which must be harmless, until the store answers or ctx ends.
// If the outcome o of the change is too large for the store, it becomes a tombstone.
func (g *Guard) sendUntil(ctx context.Context, o *store.Outcome, send func(ctx context.Context) error) error {
	for wait := 10 * time.Millisecond; ; wait = min(2*wait, time.Second) {
		err := g.request(ctx, send)
		switch {
		case err == nil || retry.Answered(err) || errors.Is(err, store.ErrChanged):
			return err
		case errors.Is(err, store.ErrTooLarge) && !o.Equal(tombstone(*o)):
			*o = tombstone(*o)
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

// maybeGranted reports whether the store may hold this call's claim, by owner, although it
// returned err. It does not if the record of another owner came with err: then only that
// record's outcome could not be decrypted or confirmed.
func (c *pendingCall) maybeGranted(f *store.Found, err error, owner store.Owner) bool {
	return err != nil && !retry.Answered(err) && (f.Won || f.Record.Key != c.key || f.Record.Owner == owner)
}

// maxUnanswered bounds the unanswered claims that a Guard sends again in the
// background during an outage.
const maxUnanswered = 1024

// giveBackUnanswered is giveBack for a claim that got no answer. It sends the
// claim again, which tells whether it was won, and then undoes it. seen is nil
// for a claim that inserts. If the first request reaches the store only after a sweep has
// removed the record of the second, it makes a claim that no process knows; see
// docs/how-to/stuck-keys.md.
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
	limited, cancel := g.storeContext(ctx)
	defer cancel()
	if seen == nil {
		return g.store.Claim(limited, p)
	}
	return g.store.Swap(limited, *seen, p)
}

// undoClaim returns a claimed record to a state. If a handler was to start, it
// gives the attempt back, too. If the claim began a life of the key, nothing has happened
// in it, so the record expires, and the key is free for another payload.
func (g *Guard) undoClaim(ctx context.Context, r *store.Record, state store.State) {
	s := store.Settlement{State: state, Attempt: r.Attempt, Error: r.LastError, Keep: protocol.KeepReleased(r.Key, g.options.Retention)}
	if state == store.Released {
		s.Attempt, s.Error = max(0, r.Attempt-1), "the caller left before the handler started"
		if beganLife(r) && (r.Fingerprint.Sum != "" || protocol.IsSaga(r.Key)) {
			s.Keep = 0
		}
	}
	err := g.settleUntil(ctx, r.Lease(), s)
	kind := EventReleased
	if state == store.Unknown {
		kind = EventParked
	}
	g.observe(ctx, Event{Kind: kind, Policy: r.Policy, Attempt: r.Attempt, Err: err}, r.Key)
	g.waiters.wake(r.Key)
}

// firstClaim proposes a record for a key that has none.
func (c *pendingCall) firstClaim() store.Proposal {
	return store.Proposal{
		Key: c.key, State: store.Processing, Policy: c.storeCall.Policy, Owner: protocol.NewOwner(), Holder: c.guard.options.Holder,
		Fingerprint: c.storeCall.Fingerprint, Attempt: 1, Lease: c.guard.options.Lease, Keep: c.guard.options.Retention,
	}
}

// nextClaim proposes the next attempt of a record, or a reservation of it.
func (c *pendingCall) nextClaim(r *store.Record, d store.Decision, to store.State) store.Proposal {
	p := c.firstClaim()
	p.State = to
	if d.Restart {
		p.Restart = true
		if r.State == store.Released && r.Attempt == 0 { // it expired at once because of NoEffect: a Guard with Retry does not weaken it
			p.Policy = r.Policy.Stricter(d.Policy)
		}
		return p
	}
	p.Policy, p.Fingerprint, p.Attempt, p.Error = d.Policy, r.Fingerprint, r.Attempt+1, r.LastError
	p.FormerOwners = r.FormerOwnersAfter(to)
	return p
}

// change proposes another state for a record, and keeps what it says of the call.
func (g *Guard) change(r *store.Record, to store.State, lastErr string) store.Proposal {
	return store.Proposal{
		Key: r.Key, State: to, Policy: r.Policy, Owner: protocol.NewOwner(), Holder: g.options.Holder, Fingerprint: r.Fingerprint,
		Attempt: r.Attempt, Keep: g.keep(r.Key, to), Error: lastErr, FormerOwners: r.FormerOwnersAfter(to),
	}
}

// keep is how long a record is kept in a state that expires.
func (g *Guard) keep(k store.Key, in store.State) time.Duration {
	if in == store.Released {
		return protocol.KeepReleased(k, g.options.Retention)
	}
	return g.options.Retention
}

// park turns a record unknown. Found.Won is false afterwards, because a change to
// Unknown is not a claim.
func (c *pendingCall) park(ctx context.Context, r *store.Record, why string) (store.Found, error) {
	p := c.guard.change(r, store.Unknown, why)
	p.Policy = store.Park
	f, err := c.swap(ctx, r.Seen(), p)
	if err == nil && f.Won {
		c.observe(ctx, EventParked, &f.Record, errors.New(why))
		f.Won = false
	}
	return f, err
}

// exhaust ends a key that has no attempt left.
func (c *pendingCall) exhaust(ctx context.Context, r *store.Record, policy Policy) (store.Found, error) {
	last := protocol.LastAttemptText(r)
	if policy == Park {
		return c.park(ctx, r, protocol.ExhaustedText(r.Attempt, last))
	}
	failure := exhaustedFailure(r.Attempt, last)
	o, err := failure.outcome()
	if err != nil {
		return store.Found{}, err
	}
	p := c.guard.change(r, store.Failed, last)
	p.Outcome = o
	f, err := c.swap(ctx, r.Seen(), p)
	if err == nil && f.Won {
		c.observe(ctx, EventFailed, &f.Record, failure)
		f.Won = false
	}
	return f, err
}
