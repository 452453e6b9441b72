package semel

import (
	"context"
	"errors"

	"github.com/semel-go/semel/internal/lapsed"
	"github.com/semel-go/semel/store"
)

// firstClaim proposes a record for a key that has none.
func (c *pendingCall) firstClaim() store.Proposal {
	return store.Proposal{
		Key: c.key, State: store.Processing, Policy: c.call.Policy, Owner: lapsed.NewOwner(), Holder: c.guard.options.Holder,
		Fingerprint: c.call.Fingerprint, Attempt: 1, Lease: c.guard.options.Lease, Keep: c.guard.options.Retention,
	}
}

// nextClaim proposes the next attempt of a record.
func (c *pendingCall) nextClaim(r *store.Record, d store.Decision) store.Proposal {
	p := c.firstClaim()
	if d.Restart {
		p.Restart = true
		return p
	}
	p.Policy, p.Fingerprint, p.Attempt, p.Error = d.Policy, r.Fingerprint, r.Attempt+1, r.LastError
	return p
}

// change proposes another state for a record, and keeps what it says of the call.
func (g *Guard) change(r *store.Record, to store.State, lastErr string) store.Proposal {
	return store.Proposal{
		Key: r.Key, State: to, Policy: r.Policy, Owner: lapsed.NewOwner(), Holder: g.options.Holder, Fingerprint: r.Fingerprint,
		Attempt: r.Attempt, Keep: g.options.Retention, Error: lastErr,
	}
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
	last := lapsed.LastText(r)
	if policy == Park {
		return c.park(ctx, r, lapsed.ExhaustedText(r.Attempt, last))
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
