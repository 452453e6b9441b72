package verify

import (
	"context"

	"github.com/semel-go/semel/store"
)

var zombieCheck = check{
	name:  "zombie",
	claim: "An owner whose lease lapsed and was taken over can neither renew nor settle, the fence has grown, and the new owner's outcome is kept.",
	run: func(ctx context.Context, p *probe) error {
		rs, err := p.lapsing(ctx, max(1, p.o.Keys/2))
		if err != nil {
			return err
		}
		if err := p.outlive(ctx, short, rs); err != nil {
			return err
		}
		return each(ctx, len(rs), p.o.Parallel, func(i int) error {
			if rs[i] == nil {
				return nil
			}
			return p.takenOver(ctx, i, rs[i])
		})
	},
}

// lapsing makes n claims whose leases are short, and renews each once.
func (p *probe) lapsing(ctx context.Context, n int) ([]*store.Record, error) {
	rs := make([]*store.Record, n)
	err := each(ctx, n, p.o.Parallel, func(i int) error {
		c := p.proposal(p.key("k", i), store.Processing)
		r, err := p.claimed(ctx, i, c)
		if err != nil || r == nil {
			return err
		}
		refused, err := lost(p.store(i+1).renew(ctx, r.Lease(), short))
		if err != nil || !p.won(c.Key, "the renewal by the owner", !refused) {
			return err
		}
		f, err := p.store(i).Get(ctx, c.Key)
		if err != nil {
			return p.vanished(c.Key, err)
		}
		if p.foreign(&f.Record) {
			return nil // it has lapsed, and somebody's sweep has recovered it
		}
		want := *r
		want.Updated, want.Until = f.Record.Updated, f.Record.Updated.Add(short)
		if p.expect(c.Key.Value+": after a renewal", differs(&want, &f.Record)) {
			rs[i] = &f.Record
		}
		if d := store.Decide(&f.Record, &store.Call{Fingerprint: c.Fingerprint}, f.Now); d.Action != store.InProgress && f.Now.Before(f.Record.Until) {
			p.broken("%q: a duplicate would %v while the lease holds", c.Key.Value, d.Action)
		}
		return nil
	})
	return rs, err
}

// takenOver has a lapsed claim taken over as a Guard does it.
func (p *probe) takenOver(ctx context.Context, i int, old *store.Record) error {
	c := p.proposal(old.Key, store.Processing)
	f, err := p.store(i).Claim(ctx, c)
	if err != nil {
		return err
	}
	if p.foreign(&f.Record) {
		return nil
	}
	if f.Won {
		p.tried(1)
		p.broken("%q: a claim wins, though the record of one that lapsed is there", old.Key.Value)
		return nil
	}
	p.expect(old.Key.Value+": after its lease", differs(old, &f.Record))
	if d := store.Decide(&f.Record, &store.Call{Fingerprint: c.Fingerprint}, f.Now); d.Action != store.TakeOver {
		p.broken("%q: a duplicate is told %v after the lease, want %v", old.Key.Value, d.Action, store.TakeOver)
		return nil
	}
	f, err = p.store(i).Swap(ctx, f.Record.Seen(), c)
	if err != nil {
		return err
	}
	if p.foreign(&f.Record) {
		return nil
	}
	if !p.won(old.Key, "a take-over", f.Won) || !p.expect(old.Key.Value+": after a take-over", replaced(&c, old, &f.Record)) {
		return nil
	}
	if err := p.zombie(ctx, i+1, old.Lease()); err != nil {
		return err
	}
	now := f.Record
	if ok, err := p.still(ctx, i, &now); err != nil || !ok {
		return err
	}
	s := p.settlement(store.Completed, long)
	refused, err := lost(p.store(i).Settle(ctx, now.Lease(), s))
	if err != nil || !p.won(old.Key, "the settlement of who took over", !refused) {
		return err
	}
	if err := p.zombie(ctx, i+1, old.Lease()); err != nil {
		return err
	}
	f, err = p.store(i+1).Get(ctx, old.Key)
	if err != nil {
		return p.vanished(old.Key, err)
	}
	p.expect(old.Key.Value+": after the new owner's settlement", settled(&s, &now, &f.Record))
	return nil
}
