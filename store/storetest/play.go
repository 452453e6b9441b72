package storetest

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"time"

	"github.com/semel-go/semel/store"
)

// arena plays histories: the same steps on each side. It compares each side's
// answers with the answers of the first side.
type arena struct {
	sides   []*side
	times   times
	like    comparison
	advance func(d time.Duration) // moves the clocks of all sides; nil: they run
	floors  bool                  // all sides keep the highest fence that was swept
	settle  time.Duration         // how long a read waits for a time that is about to come
	tally   tally
}

// mismatch is a failure of a history, and the step at which it was seen.
type mismatch struct {
	at  int
	why string
}

// play runs the steps on keys of the scope that is named. It returns nil if
// nothing is wrong.
func (a *arena) play(ctx context.Context, scope string, steps []step) *mismatch {
	for _, s := range a.sides {
		s.scope(scope)
	}
	for i := range steps {
		p := &steps[i]
		if p.deed == doAdvance {
			if d := p.move(&a.times); a.advance != nil {
				a.advance(d)
				if d < 0 && !a.floors {
					a.like.fences = false // from now on each may count in its own way
				}
			}
			a.tally.count(p, nil, &a.times)
			continue
		}
		if why := a.one(ctx, p); why != "" {
			return &mismatch{i, why}
		}
	}
	return nil
}

// one plays a step on all sides.
func (a *arena) one(ctx context.Context, p *step) string {
	var first result
	for i, s := range a.sides {
		res, err := s.do(ctx, p, &a.times)
		if err != nil {
			return err.Error()
		}
		if res.has {
			if bad := s.grows(res.key, res.found.Record.Fence); bad != "" {
				return s.name + ": " + bad
			}
		}
		if i == 0 {
			first = res
			a.tally.count(p, &res, &a.times)
		} else if why := a.like.results(p, a.sides[0], s, &first, &res); why != "" {
			return s.name + ": " + why
		}
		for k := range subjects {
			if k != res.key && p.deed != doRenew && p.deed != doSweep {
				continue
			}
			s.before[k] = s.after[k]
			if err := s.look(ctx, k, a.settle); err != nil {
				return err.Error()
			}
			if bad := s.rules(p, k, &s.before[k], &s.after[k], &res); bad != "" {
				return s.name + ": " + bad
			}
			if i > 0 {
				if why := a.like.states(a.sides[0], s, k); why != "" {
					return s.name + ": " + why
				}
			}
		}
	}
	return ""
}

// look reads the record of a key as a step left it. A time that is less than
// wait away is waited for, so that both sides' clocks have passed it.
func (s *side) look(ctx context.Context, k int, wait time.Duration) error {
	var start time.Time
	for {
		f, err := s.st.Get(ctx, s.keys[k])
		if errors.Is(err, store.ErrNotFound) {
			s.after[k] = snapshot{}
			return nil
		} else if err != nil {
			return fmt.Errorf("%s: Get: %w", s.name, err)
		}
		s.after[k] = snapshot{true, f}
		soon := func(t time.Time) bool { return f.Now.Before(t) && t.Sub(f.Now) < wait }
		if !soon(f.Record.Until) && !soon(f.Record.Expires) {
			return nil
		}
		if start.IsZero() {
			start = time.Now()
		}
		if time.Since(start) > patience {
			return fmt.Errorf("%s: the clock stays at %v", s.name, f.Now)
		}
	}
}

// clear ends all records of the last history and sweeps them.
func (a *arena) clear(ctx context.Context) error {
	for _, s := range a.sides {
		for _, k := range s.keys {
			f, err := s.st.Get(ctx, k)
			if errors.Is(err, store.ErrNotFound) {
				continue
			} else if err != nil {
				return fmt.Errorf("%s: Get: %w", s.name, err)
			}
			end := proposal(k, store.Completed)
			end.Keep = 0
			if f, err := s.st.Swap(ctx, f.Record.Seen(), end); err != nil || !f.Won {
				return fmt.Errorf("%s: Swap: won %v, error %w", s.name, f.Won, err)
			}
		}
		if err := s.sweep(ctx, 1000, new(result)); err != nil {
			return fmt.Errorf("%s: %w", s.name, err)
		}
	}
	return nil
}

// shorten leaves out steps as long as the rest still goes wrong, on arenas
// that fresh makes.
func shorten(ctx context.Context, steps []step, fresh func() *arena) []step {
	for before := len(steps) + 1; len(steps) < before; {
		before = len(steps)
		for i := len(steps) - 2; i >= 0; i-- {
			fewer := append(append([]step(nil), steps[:i]...), steps[i+1:]...)
			if m := fresh().play(ctx, "shorter", fewer); m != nil {
				steps = fewer[:m.at+1]
				i = min(i, len(steps)-1)
			}
		}
	}
	return steps
}

// report is a failed history for people.
func (a *arena) report(ctx context.Context, seed uint64, steps []step, m *mismatch, fresh func() *arena) string {
	var b strings.Builder
	fmt.Fprintf(&b, "history %#x goes wrong at its step %d: %s\nplay it again with storetest.History(t, harness, %#x, %d)\n", seed, m.at+1, m.why, seed, len(steps))
	list := func(title string, steps []step) {
		fmt.Fprintf(&b, "%s:\n", title)
		for i := range steps {
			fmt.Fprintf(&b, "%4d. %s\n", i+1, steps[i].describe(&a.times))
		}
	}
	prefix := steps[:m.at+1]
	if fresh != nil {
		if short := shorten(ctx, prefix, fresh); len(short) < len(prefix) {
			list("fewer steps that go wrong too", short)
			return b.String()
		}
	}
	list("its steps", prefix)
	return b.String()
}
