package verify

import (
	"context"

	"github.com/semel-go/semel/store"
)

var lostReplies = check{
	name:  "lost-reply",
	claim: "A request that is sent again after its reply was lost gets the result of the first: a claim, a swap, a settlement; no other request does.",
	run: func(ctx context.Context, p *probe) error {
		n := max(1, p.o.Keys/2)
		return each(ctx, n, p.o.Parallel, func(i int) error {
			c := p.proposal(p.key("k", i), store.Processing)
			r, err := p.claimed(ctx, i, c)
			if err != nil || r == nil {
				return err
			}
			p.expect(c.Key.Value+": after a claim", inserted(&c, r))
			if err := p.sentAgain(ctx, "a claim", r, func() (store.Found, error) { return p.store(i+1).Claim(ctx, c) }); err != nil {
				return err
			}
			swap := p.proposal(c.Key, store.Processing)
			seen := r.Seen()
			f, err := p.store(i).Swap(ctx, seen, swap)
			if err != nil {
				return err
			}
			if !p.won(c.Key, "a swap of what was just seen", f.Won) {
				return nil
			}
			if err := p.sentAgain(ctx, "a swap", &f.Record, func() (store.Found, error) { return p.store(i+1).Swap(ctx, seen, swap) }); err != nil {
				return err
			}
			return p.settledTwice(ctx, i, &f.Record, &swap)
		})
	},
}

// sentAgain sends something again, which has to find its own record.
func (p *probe) sentAgain(ctx context.Context, what string, r *store.Record, send func() (store.Found, error)) error {
	f, err := send()
	if err != nil {
		return err
	}
	p.tried(1)
	if !f.Won {
		p.broken("%q: %s, sent again, loses to itself", r.Key.Value, what)
	}
	if !p.expect(r.Key.Value+": "+what+", sent again, changes the record", differs(r, &f.Record)) {
		return nil
	}
	return p.unchanged(ctx, 0, r)
}

// won is broken unless it is.
func (p *probe) won(k store.Key, what string, won bool) bool {
	p.tried(1)
	if !won {
		p.broken("%q: %s is refused", k.Value, what)
	}
	return won
}

// settledTwice settles a claim, again, and in another way; and sends the claim
// again in the end.
func (p *probe) settledTwice(ctx context.Context, i int, r *store.Record, c *store.Proposal) error {
	s := p.settlement([]store.State{store.Completed, store.Failed, store.Released}[i%3], long)
	switch refused, err := lost(p.store(i).Settle(ctx, r.Lease(), s)); {
	case err != nil:
		return err
	case !p.won(r.Key, "the owner's settlement", !refused):
		return nil
	}
	f, err := p.store(i+1).Get(ctx, r.Key)
	if err != nil {
		return p.vanished(r.Key, err)
	}
	if !p.expect(r.Key.Value+": after its settlement", settled(&s, r, &f.Record)) {
		return nil
	}
	refused, err := lost(p.store(i+1).Settle(ctx, r.Lease(), s))
	if err != nil {
		return err
	}
	p.won(r.Key, "the same settlement, sent again,", !refused)
	refused, err = lost(p.store(i).Settle(ctx, r.Lease(), p.settlement(store.Completed, long)))
	if err != nil {
		return err
	}
	p.tried(2)
	if !refused {
		p.broken("%q: a second, different settlement is accepted", r.Key.Value)
	}
	late, err := p.store(i).Claim(ctx, *c)
	if err != nil {
		return err
	}
	if late.Won {
		p.broken("%q: a claim, sent again after its settlement, wins once more", r.Key.Value)
	}
	return p.unchanged(ctx, i+1, &f.Record)
}
