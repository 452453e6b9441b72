package demo

import (
	"context"
	"errors"
	"math/rand/v2"
	"time"
)

// The kills come between these shares of the plan, in percent. Latencies are
// measured before the first; the last leaves orders to look for.
const calm, stormy = 20, 85

// storm kills the processes in turn, n times each, spread over the plan. It
// ends early when the plan is done. Hope is how many requests it would like to
// find in flight.
func (s *side) storm(ctx context.Context, n, hope int) error {
	targets := s.targets()
	steps := len(s.plan.Steps)
	for i := range n * len(targets) {
		at := int64(steps) * calm / 100
		at += int64(steps) * (stormy - calm) * int64(i) / int64(100*n*len(targets))
		if !s.reached(ctx, at) {
			return nil
		}
		for _, t := range targets { // else it would be killed before it has begun
			if err := t.Ready(ctx, t.health); err != nil {
				if s.over(ctx) {
					return nil
				}
				return err
			}
		}
		s.fleet.Disturbed.Store(true)
		if err := s.strike(ctx, targets[i%len(targets)], hope); err != nil {
			return err
		}
	}
	return nil
}

// reached waits until so many steps are done.
func (s *side) reached(ctx context.Context, at int64) bool {
	for s.fleet.Steps.Load() < at {
		if s.over(ctx) || !pause(ctx, time.Millisecond) {
			return false
		}
	}
	return !s.over(ctx)
}

// over reports whether nothing is left to disturb.
func (s *side) over(ctx context.Context) bool {
	return ctx.Err() != nil || s.fleet.Steps.Load() == int64(len(s.plan.Steps))
}

// strike kills a process while it is at work: it is frozen, looked at, and let
// go on if there was too little to disturb. Much is hoped for at first, and
// less with each look; anything at all has to be there.
func (s *side) strike(ctx context.Context, t *target, hope int) error {
	for ; !s.over(ctx); hope -= 2 {
		if err := t.Freeze(); err != nil {
			return err
		}
		pause(ctx, settle)
		n, err := t.inFlight()
		if err == nil && n > 0 && n >= hope {
			t.kills.Add(1)
			t.lost.Add(int64(n))
			return t.Kill()
		}
		if err := errors.Join(err, t.Thaw()); err != nil {
			return err
		}
		pause(ctx, rand.N(5*time.Millisecond))
	}
	return nil
}

// pause reports whether it came to its end.
func pause(ctx context.Context, d time.Duration) bool {
	select {
	case <-ctx.Done():
		return false
	case <-time.After(d):
		return true
	}
}
