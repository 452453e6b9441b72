package verify

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/semel-go/semel/store"
)

var expiryCheck = check{
	name:  "expiry",
	claim: "A kept outcome is there until its retention ends by the store's clock, never less; then the key is free again, with a higher fence.",
	run: func(ctx context.Context, p *probe) error {
		n := max(3, p.o.Keys/2)
		brief, err := p.keeping(ctx, "short", n, short)
		if err != nil {
			return err
		}
		kept, err := p.keeping(ctx, "long", n, long)
		if err != nil {
			return err
		}
		for i := range brief {
			if err := p.early(ctx, i, &brief[i]); err != nil {
				return err
			}
		}
		rs := make([]*store.Record, n)
		for i := range rs {
			rs[i] = brief[i].record
		}
		if err := p.outlive(ctx, short, rs); err != nil {
			return err
		}
		if err := p.restarts(ctx, rs[:n/2]); err != nil {
			return err
		}
		if err := p.sweep(ctx, nil); err != nil {
			return err
		}
		if err := p.removed(ctx, rs[n/2:]); err != nil {
			return err
		}
		for i := range kept {
			if kept[i].record == nil {
				continue
			}
			p.tried(1)
			if err := p.unchanged(ctx, i, kept[i].record); err != nil {
				return err
			}
		}
		return nil
	},
}

// keeping is a record that is kept, and when, by this machine, its retention
// had not begun yet.
type keeping struct {
	record *store.Record
	before time.Time
}

// keeping makes n records that are kept for d.
func (p *probe) keeping(ctx context.Context, kind string, n int, d time.Duration) ([]keeping, error) {
	ks := make([]keeping, n)
	err := each(ctx, n, p.o.Parallel, func(i int) error {
		r, err := p.claimed(ctx, i, p.proposal(p.key(kind, i), store.Processing))
		if err != nil || r == nil {
			return err
		}
		s, before := p.settlement([]store.State{store.Completed, store.Failed, store.Released}[i%3], d), time.Now()
		refused, err := lost(p.store(i).Settle(ctx, r.Lease(), s))
		if err != nil || !p.won(r.Key, "the owner's settlement", !refused) {
			return err
		}
		f, err := p.store(i+1).Get(ctx, r.Key)
		switch {
		case errors.Is(err, store.ErrNotFound):
			return p.missing(r.Key, before, d)
		case err != nil:
			return err
		}
		if p.expect(r.Key.Value+": after its settlement", settled(&s, r, &f.Record)) {
			ks[i] = keeping{&f.Record, before}
		}
		return nil
	})
	return ks, err
}

// missing is broken unless the retention of an absent record may have ended.
// It had begun when it was asked for, or later: so an answer that comes before
// before + d, however slow it was, is wrong. A hundredth is for the clocks.
func (p *probe) missing(k store.Key, before time.Time, d time.Duration) error {
	if after := time.Since(before); after < d-d/100 {
		p.broken("%q: its record is gone %v after it was kept for %v", k.Value, after.Round(time.Millisecond), d)
	}
	return nil
}

// early looks at a record whose retention is short, and likely not over.
func (p *probe) early(ctx context.Context, i int, k *keeping) error {
	if k.record == nil {
		return nil
	}
	p.tried(1)
	c := p.proposal(k.record.Key, store.Processing)
	f, err := p.store(i).Claim(ctx, c)
	if err != nil {
		return err
	}
	if f.Won {
		k.record = nil // it is another now
		return p.missing(c.Key, k.before, short)
	}
	p.expect(c.Key.Value+": as a duplicate finds it", differs(k.record, &f.Record))
	if d := store.Decide(&f.Record, &store.Call{Fingerprint: c.Fingerprint}, f.Now); d.Restart && time.Since(k.before) < short-short/100 {
		p.broken("%q: a duplicate is told after %v that the retention of %v is over", c.Key.Value, time.Since(k.before), short)
	}
	return nil
}

// restarts claims records again whose retention is over.
func (p *probe) restarts(ctx context.Context, rs []*store.Record) error {
	for i, old := range rs {
		if old == nil {
			continue
		}
		c := p.proposal(old.Key, store.Processing)
		f, err := p.store(i).Claim(ctx, c)
		if err != nil {
			return err
		}
		p.tried(1)
		if f.Won { // somebody's sweep has removed it
			p.fenceGrew(old, &f.Record)
			continue
		}
		p.expect(old.Key.Value+": expired, but not yet removed", differs(old, &f.Record))
		if d := store.Decide(&f.Record, &store.Call{Fingerprint: c.Fingerprint}, f.Now); !d.Restart {
			p.broken("%q: a call is told %v, though the retention is over", old.Key.Value, d.Action)
		}
		c.Restart = true
		switch f, err = p.store(i+1).Swap(ctx, f.Record.Seen(), c); {
		case errors.Is(err, store.ErrNotFound): // removed, meanwhile
		case err != nil:
			return err
		case p.won(old.Key, "the restart of an expired record", f.Won):
			p.expect(old.Key.Value+": after its restart", replaced(&c, old, &f.Record))
		}
	}
	return nil
}

// removed looks for records whose retention is over, after a sweep.
func (p *probe) removed(ctx context.Context, rs []*store.Record) error {
	for i, old := range rs {
		if old == nil {
			continue
		}
		p.tried(1)
		f, err := p.store(i).Get(ctx, old.Key)
		if err == nil {
			p.broken("%q: a sweep has left it, though its retention was over at %v and it is %v", old.Key.Value, old.Expires, f.Now)
			continue
		}
		if !errors.Is(err, store.ErrNotFound) {
			return err
		}
		r, err := p.claimed(ctx, i+1, p.proposal(old.Key, store.Processing))
		if err != nil {
			return err
		}
		if r != nil {
			p.fenceGrew(old, r)
		}
	}
	return nil
}

// fenceGrew is broken unless it did, across a removal.
func (p *probe) fenceGrew(old, r *store.Record) {
	if r.Fence <= old.Fence {
		p.broken("%q: the fence was %d before the record was removed, and is %d after: an earlier owner may pass for the new one", old.Key.Value, old.Fence, r.Fence)
	}
}

const (
	// batch is how much a step of a sweep may take: little enough that nobody
	// waits for it for long.
	batch = 500
	// mostSteps end a sweep that does not end.
	mostSteps = 200_000
)

// sweep makes one pass over the whole store. It removes only what has
// expired, whose ever it is, as any sweep may; each is told what is handed
// back. Nil each: nobody is.
func (p *probe) sweep(ctx context.Context, each func(store.SweepResult)) error {
	var from store.Cursor
	for range mostSteps {
		res, err := p.store(0).Sweep(ctx, from, batch)
		if err != nil {
			return err
		}
		if each != nil {
			each(res)
		}
		if from = res.Next; from == "" {
			return nil
		}
	}
	return fmt.Errorf("a pass of sweeps has not ended after %d steps", mostSteps)
}

// outlive waits until the store's clock has passed the end of all the records,
// which are d away at most.
func (p *probe) outlive(ctx context.Context, d time.Duration, rs []*store.Record) error {
	var end time.Time
	var k store.Key
	for _, r := range rs {
		if r == nil {
			continue
		}
		until := r.Until
		if !r.Expires.IsZero() {
			until = r.Expires
		}
		if until.After(end) {
			end, k = until, r.Key
		}
	}
	if end.IsZero() {
		return nil
	}
	begun := time.Now()
	for {
		now, err := p.now(ctx, k)
		if err != nil || !now.Before(end) {
			return err
		}
		if time.Since(begun) > 2*d+10*time.Second {
			p.tried(1)
			p.broken("the store's clock is %v after %v, and does not reach %v, which was to be %v away", now, time.Since(begun).Round(time.Second), end, d)
			return nil
		}
		if !pause(ctx, max(time.Millisecond, min(end.Sub(now), d))) {
			return ctx.Err()
		}
	}
}

// now is the store's clock. Reads of a record give it, and of absent ones it
// is not promised: then a claim does.
func (p *probe) now(ctx context.Context, k store.Key) (time.Time, error) {
	f, err := p.store(0).Get(ctx, k)
	if err == nil {
		return f.Now, nil
	}
	f, err = p.store(0).Claim(ctx, p.proposal(p.key("clock", 0), store.Processing))
	return f.Now, err
}
