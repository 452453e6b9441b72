package main

import (
	"context"
	"errors"
	"math/rand/v2"
	"time"
)

// The kills come between these shares of the plan, in percent. Latencies are
// measured before the first; the last leaves orders to look for.
const calm, stormy = 20, 85

// storm kills the processes of a side while they work.
type storm struct {
	targets []*target
	steps   int64        // of the plan
	done    func() int64 // of those
	disturb func() error // ends the measurement of latencies
	// hold keeps those who work from going further than so many steps, while
	// the processes are not ready to be killed. Nil: they cannot be held.
	hold func(upTo int64)

	begun time.Time // set by run
	kills []Kill    // read it after run
}

// run kills n times, the processes in turn, spread over the plan. It ends early
// when the plan is done. Hope is how many requests it would like to find in
// flight.
func (s *storm) run(ctx context.Context, n, hope int) error {
	s.begun, s.kills = time.Now(), []Kill{}
	defer s.holdAt(s.steps)
	for i := range n {
		at, apart := s.steps*calm/100, s.steps*(stormy-calm)/int64(100*n)
		at += apart * int64(i)
		s.holdAt(at + min(apart, mostAhead))
		if !s.reached(ctx, at) {
			return nil
		}
		for _, t := range s.targets { // so that no process is killed before it is ready
			if err := t.ready(ctx); err != nil {
				if s.over(ctx) {
					return nil
				}
				return err
			}
		}
		if err := s.disturb(); err != nil {
			return err
		}
		if err := s.strike(ctx, s.targets[i%len(s.targets)], hope); err != nil {
			return err
		}
	}
	return nil
}

const (
	// mostAhead is how far those who work get while a process is not ready.
	mostAhead = 100
	// enough work is there to find some of it under way.
	enough = 32
)

// ahead is how far those who work get while a kill looks for work under way: not so far
// that the plan ends before the storm does.
func (s *storm) ahead() int64 { return max(1, min(enough, (s.steps-s.done())/4)) }

func (s *storm) holdAt(n int64) {
	if s.hold != nil {
		s.hold(n)
	}
}

// reached waits until so many steps are done.
func (s *storm) reached(ctx context.Context, at int64) bool {
	for s.done() < at {
		if s.over(ctx) || !pause(ctx, time.Millisecond) {
			return false
		}
	}
	return !s.over(ctx)
}

// over reports whether nothing is left to disturb.
func (s *storm) over(ctx context.Context) bool { return ctx.Err() != nil || s.done() >= s.steps }

// strike kills a process while it is at work: it is frozen, looked at, and let
// go on if there was too little to disturb. Much is hoped for at first, and
// less with each look; anything at all has to be there.
func (s *storm) strike(ctx context.Context, t *target, hope int) error {
	for ; !s.over(ctx); hope -= 2 {
		s.holdAt(s.done() + s.ahead())
		if err := t.Freeze(); err != nil {
			return err
		}
		pause(ctx, settle)
		n, err := t.inFlight()
		if err == nil && n > 0 && n >= hope {
			t.kills.Add(1)
			t.lost.Add(int64(n))
			s.kills = append(s.kills, Kill{time.Since(s.begun).Seconds(), t.title, n})
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
