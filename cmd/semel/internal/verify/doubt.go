package verify

import (
	"context"
	"errors"
	"slices"

	"github.com/semel-go/semel/store"
)

var doubtCheck = check{
	name:  "doubt",
	claim: "A record in flight outlives its lease, and a parked one everything: no claim and no sweep makes doubt forgotten.",
	run: func(ctx context.Context, p *probe) error {
		n := max(len(doubtful), p.o.Keys/2)
		rs := make([]*store.Record, n)
		err := each(ctx, n, p.o.Parallel, func(i int) (err error) {
			rs[i], err = p.doubt(ctx, i)
			return err
		})
		if err != nil {
			return err
		}
		if err := p.outlive(ctx, short, rs); err != nil {
			return err
		}
		back := map[store.Key]bool{}
		for range 3 { // where there is much, a pass may leave out what the next one hands back
			err := p.sweep(ctx, func(res store.SweepResult) {
				for i := range res.Lapsed {
					back[res.Lapsed[i].Key] = true
				}
			})
			if err != nil {
				return err
			}
			if !slices.ContainsFunc(rs, func(r *store.Record) bool { return r != nil && r.State != store.Unknown && !back[r.Key] }) {
				break
			}
		}
		for i, r := range rs {
			if r == nil {
				continue
			}
			if err := p.remembered(ctx, i, r, back[r.Key]); err != nil {
				return err
			}
		}
		return nil
	},
}

// doubtful are the records that nothing may forget.
var doubtful = []struct {
	state  store.State
	policy store.Policy
	action store.Action // the error of a duplicate after the lease
}{
	{store.Processing, store.Park, store.DoPark},
	{store.Unknown, store.Park, store.Parked},
	{store.Processing, store.Retry, store.TakeOver},
	{store.Started, store.Park, store.Execute},
}

// doubt makes one of them.
func (p *probe) doubt(ctx context.Context, i int) (*store.Record, error) {
	d := doubtful[i%len(doubtful)]
	c := p.proposal(p.key(d.state.String(), i), store.Processing)
	c.Policy, c.Lease = d.policy, short
	if d.state == store.Started {
		c.State = d.state
	}
	r, err := p.claimed(ctx, i, c)
	if err != nil || r == nil {
		return nil, err
	}
	if d.state != store.Unknown {
		return r, nil
	}
	s := p.settlement(store.Unknown, 0)
	refused, err := lost(p.store(i).Settle(ctx, r.Lease(), s))
	if err != nil {
		return nil, err
	}
	f, err := p.store(i+1).Get(ctx, c.Key)
	switch {
	case err != nil:
		return nil, p.vanished(c.Key, err)
	case refused && p.foreign(&f.Record):
		return nil, nil // its lease was over, and somebody's sweep has recovered it
	case !p.won(c.Key, "the owner's settlement", !refused) || !p.expect(c.Key.Value+": after its settlement", settled(&s, r, &f.Record)):
		return nil, nil // it is reported
	}
	return &f.Record, nil
}

// remembered is broken unless a doubtful record is as it was.
func (p *probe) remembered(ctx context.Context, i int, r *store.Record, back bool) error {
	f, err := p.store(i).Get(ctx, r.Key)
	if errors.Is(err, store.ErrNotFound) {
		p.tried(1)
		p.broken("%q: its %v record is forgotten: a duplicate would run again", r.Key.Value, r.State)
		return nil
	}
	if err != nil {
		return err
	}
	if p.foreign(&f.Record) {
		return nil // recovered by somebody's sweep, which is what it is for
	}
	p.tried(1)
	if !p.expect(r.Key.Value+": after its lease and a sweep", differs(r, &f.Record)) {
		return nil
	}
	d := doubtful[i%len(doubtful)]
	if got := store.Decide(&f.Record, &store.Call{Policy: r.Policy, Fingerprint: r.Fingerprint}, f.Now).Action; got != d.action {
		p.broken("%q: a duplicate is told %v of a lapsed %v record, want %v", r.Key.Value, got, r.State, d.action)
	}
	if d.state != store.Unknown && !back {
		p.broken("%q: its lease is over, and three passes of a sweep have not handed it back: nobody would recover it", r.Key.Value)
	}
	if d.state == store.Unknown && back {
		p.broken("%q: it is parked, and a sweep handed it back as lapsed", r.Key.Value)
	}
	f, err = p.store(i+1).Claim(ctx, p.proposal(r.Key, store.Processing))
	if err != nil {
		return err
	}
	if f.Won && !p.foreign(&f.Record) {
		p.broken("%q: a claim wins over a record in doubt (%v)", r.Key.Value, r.State)
	}
	return nil
}
