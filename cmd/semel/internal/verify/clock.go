package verify

import (
	"context"
	"time"

	"github.com/semel-go/semel/store"
)

const (
	// apart is how far the store's clock may be from this machine's before
	// there is a warning: the times in records and logs then mislead people.
	// Leases and retentions are right all the same: the store's clock alone
	// decides on them.
	apart = time.Second
	// back is how far it may go back from one connection to another: by more,
	// a lease could lapse for one while it holds for another. By less there is
	// a warning if it is more than quietly.
	back    = time.Second
	quietly = time.Millisecond
)

var clockCheck = check{
	name:  "clock",
	claim: "The store has one clock: what it answers is the time that it writes, and it does not go back from one connection to another.",
	run: func(ctx context.Context, p *probe) error {
		c := p.proposal(p.key("k", 0), store.Processing)
		r, err := p.claimed(ctx, 0, c)
		if err != nil || r == nil {
			return err
		}
		var last time.Time
		var offset, precision, worst time.Duration
		for i := range max(50, p.o.Keys) {
			sent := time.Now()
			f, err := p.store(i).Get(ctx, c.Key)
			took := time.Since(sent)
			if err != nil {
				return p.vanished(c.Key, err)
			}
			p.tried(1)
			worst = max(worst, last.Sub(f.Now))
			if d := last.Sub(f.Now); d > back {
				p.broken("the clock goes back by %v from one read to the next, on another connection", d.Round(time.Microsecond))
			}
			last = f.Now
			// The clock was read in between: half of the way is the best guess.
			if half := took / 2; precision == 0 || half < precision {
				offset, precision = f.Now.Sub(sent.Add(half)), max(half, time.Microsecond)
			}
		}
		if worst > quietly && worst <= back {
			p.warn("the clock goes back by %v from one connection to another; up to %v is borne", worst.Round(time.Microsecond), back)
		}
		p.info("the store's clock is %v from this machine's, ± %v", offset.Round(time.Microsecond), precision.Round(time.Microsecond))
		if offset.Abs()-precision > apart {
			p.warn("the store's clock is %v from this machine's, ± %v; over %v the times in records and logs mislead people, though leases and retentions are right", offset.Round(time.Millisecond), precision.Round(time.Microsecond), apart)
		}
		return p.stamps(ctx)
	},
}

// stamps compares the clock of an answer with the times that were written in
// the same step: a lease is judged by the one, and ends by the other.
func (p *probe) stamps(ctx context.Context) error {
	for i := range max(1, p.o.Keys/10) {
		c := p.proposal(p.key("stamp", i), store.Processing)
		sent := time.Now()
		f, err := p.store(i).Claim(ctx, c)
		if err != nil {
			return err
		}
		took := time.Since(sent)
		p.tried(1)
		if d := f.Now.Sub(f.Record.Updated); d.Abs() > took+back {
			p.broken("%q: the store says that it is %v, and writes %v in the same step", c.Key.Value, f.Now, f.Record.Updated)
		}
		sent = time.Now()
		g, err := p.store(i+1).Get(ctx, c.Key)
		if err != nil {
			return p.vanished(c.Key, err)
		}
		if d := g.Now.Sub(f.Record.Updated); d < -back || d > took+time.Since(sent)+back {
			p.broken("%q: a read says that it is %v, %v after the record was written at %v", c.Key.Value, g.Now, d, f.Record.Updated)
		}
	}
	return nil
}
