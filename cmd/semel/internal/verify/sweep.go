package verify

import (
	"context"
	"fmt"
	"time"

	"github.com/semel-go/semel/store"
)

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
