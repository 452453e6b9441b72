package verify

import (
	"context"
	"errors"
	"time"

	"github.com/semel-go/semel/store"
)

var lateMessages = check{
	name:  "late-message",
	claim: "What a network delivers late, after a take-over or after the record was removed, changes nothing and brings nothing back.",
	run: func(ctx context.Context, p *probe) error {
		n := max(1, p.o.Keys/2)
		gone := make([]*store.Record, n)
		err := each(ctx, n, p.o.Parallel, func(i int) (err error) {
			gone[i], err = p.late(ctx, i)
			return err
		})
		if err != nil {
			return err
		}
		return p.lateAfterRemoval(ctx, gone)
	},
}

// late has a claim taken over, delivers all that its owner may have sent, and
// ends the record.
func (p *probe) late(ctx context.Context, i int) (*store.Record, error) {
	c := p.proposal(p.key("k", i), store.Processing)
	old, err := p.claimed(ctx, i, c)
	if err != nil || old == nil {
		return nil, err
	}
	f, err := p.store(i+1).Swap(ctx, old.Seen(), p.proposal(c.Key, store.Processing))
	if err != nil {
		return nil, err
	}
	if !p.won(c.Key, "a take-over", f.Won) {
		return nil, nil // it is reported
	}
	r := f.Record
	if err := p.deliver(ctx, i, &c, old); err != nil {
		return nil, err
	}
	if ok, err := p.still(ctx, i, &r); err != nil || !ok {
		return nil, err
	}
	refused, err := lost(p.store(i).Settle(ctx, r.Lease(), p.settlement(store.Released, time.Microsecond)))
	if err != nil || !p.won(c.Key, "the settlement of who took over", !refused) {
		return nil, err
	}
	return &r, nil
}

// deliver sends what the owner of old may have sent, which must be refused.
func (p *probe) deliver(ctx context.Context, i int, c *store.Proposal, old *store.Record) error {
	st, k := p.store(i), old.Key.Value
	if f, err := st.Claim(ctx, *c); err != nil {
		return err
	} else if f.Won {
		p.broken("%q: a claim that comes late wins, after a take-over", k)
	}
	if f, err := st.Swap(ctx, old.Seen(), p.proposal(old.Key, store.Processing)); err != nil {
		return err
	} else if f.Won {
		p.broken("%q: a swap of what was seen before a take-over wins", k)
	}
	p.tried(2)
	return p.zombie(ctx, i, old.Lease())
}

// zombie sends what the owner of a lease that is over may send.
func (p *probe) zombie(ctx context.Context, i int, l store.Lease) error {
	if refused, err := lost(p.store(i).renew(ctx, l, long)); err != nil {
		return err
	} else if !refused {
		p.broken("%q: a lease that is over is renewed", l.Key.Value)
	}
	for _, s := range []store.State{store.Completed, store.Released, store.Unknown} {
		if refused, err := lost(p.store(i).Settle(ctx, l, p.settlement(s, long))); err != nil {
			return err
		} else if !refused {
			p.broken("%q: a settlement (%v) under a lease that is over is accepted", l.Key.Value, s)
		}
	}
	p.tried(4)
	return nil
}

// lateAfterRemoval sweeps the records away, and delivers once more.
func (p *probe) lateAfterRemoval(ctx context.Context, gone []*store.Record) error {
	if !pause(ctx, 10*time.Millisecond) { // they expire after a microsecond
		return ctx.Err()
	}
	if err := p.sweep(ctx, nil); err != nil {
		return err
	}
	for i, r := range gone {
		if r == nil {
			continue
		}
		switch _, err := p.store(i).Get(ctx, r.Key); {
		case err == nil:
			continue // whether what is over is removed is not the question here
		case !errors.Is(err, store.ErrNotFound):
			return err
		}
		if err := p.zombie(ctx, i, r.Lease()); err != nil {
			return err
		}
		p.tried(2)
		if _, err := p.store(i).Swap(ctx, r.Seen(), p.proposal(r.Key, store.Processing)); err == nil {
			p.broken("%q: a swap of a record that was removed is made", r.Key.Value)
		} else if !errors.Is(err, store.ErrNotFound) {
			return err
		}
		if _, err := p.store(i+1).Get(ctx, r.Key); err == nil {
			p.broken("%q: a message that came late brought back the record that was removed", r.Key.Value)
		} else if !errors.Is(err, store.ErrNotFound) {
			return err
		}
	}
	return nil
}
