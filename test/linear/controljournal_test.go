package linear

import (
	"context"
	"slices"
	"time"

	"github.com/semel-go/semel/store"
)

const (
	stepOfAnyone  flaw = "a step is recorded without its lease"
	stepLost      flaw = "a step is acknowledged and lost"
	stepReplaced  flaw = "a step replaces another of its name"
	stepsOutlive  flaw = "a new life of the key has the steps of the old one"
	stepsForget   flaw = "a takeover loses the steps"
	timerOfAnyone flaw = "a timer is changed whose version is not the one seen"
	timerUnlocked flaw = "a change of a timer reads, and then writes without looking again"
	timerMissed   flaw = "a timer that is due is not found"
	timerDropped  flaw = "a timer is dropped whose version is not the one seen"
)

var journalFlaws = []flaw{
	stepOfAnyone, stepLost, stepReplaced, stepsOutlive, stepsForget, timerOfAnyone, timerUnlocked, timerMissed, timerDropped,
}

// journaled is a broken store with steps and timers. A step belongs to a life of a key,
// which its record names by the time at which it was made.
type journaled struct {
	*broken
	steps  map[store.Key][]store.Step
	timers map[store.Key]store.Timer
}

func newJournaled(f flaw) *journaled {
	b := &journaled{broken: newBroken(f), steps: map[store.Key][]store.Step{}, timers: map[store.Key]store.Timer{}}
	b.wrote = func(k store.Key, newLife bool) {
		if newLife && f != stepsOutlive || f == stepsForget {
			delete(b.steps, k)
		}
	}
	return b
}

func (b *journaled) RecordStep(_ context.Context, l store.Lease, s store.Step) error {
	b.mu.Lock()
	defer b.mu.Unlock()
	r, ok := b.at[l.Key]
	if !ok || (r.Lease() != l || r.State != store.Processing) && b.flaw != stepOfAnyone {
		return store.ErrLeaseLost
	}
	steps := b.steps[l.Key]
	i := slices.IndexFunc(steps, func(o store.Step) bool { return o.Name == s.Name })
	b.n++
	switch {
	case i >= 0 && b.flaw == stepReplaced:
		steps[i] = s
	case i >= 0:
		return store.SameStep(&steps[i], &s)
	case b.flaw != stepLost || b.n%3 > 0:
		b.steps[l.Key] = append(steps, s)
	}
	return nil
}

func (b *journaled) Steps(_ context.Context, l store.Lease) ([]store.Step, error) {
	b.mu.Lock()
	defer b.mu.Unlock()
	if r, ok := b.at[l.Key]; !ok || r.Lease() != l {
		return nil, store.ErrLeaseLost
	}
	return slices.Clone(b.steps[l.Key]), nil
}

func (b *journaled) SetTimer(_ context.Context, k store.Key, seen, next store.Owner, wait time.Duration) (bool, error) {
	b.mu.Lock()
	defer b.mu.Unlock()
	t, ok := b.timers[k]
	b.gap(timerUnlocked)
	if seen != (store.Owner{}) && (!ok || t.Version != seen) && b.flaw != timerOfAnyone {
		return ok && t.Version == next, nil
	}
	b.timers[k] = store.Timer{Key: k, Version: next, Due: clock().Add(wait)}
	return true, nil
}

func (b *journaled) DropTimer(_ context.Context, k store.Key, seen store.Owner) error {
	b.mu.Lock()
	defer b.mu.Unlock()
	if b.timers[k].Version == seen || b.flaw == timerDropped {
		delete(b.timers, k)
	}
	return nil
}

func (b *journaled) DueTimers(_ context.Context, _ string, within time.Duration, _ int) (due []store.Timer, now time.Time, err error) {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.n++
	now = clock()
	for _, t := range b.timers {
		if !t.Due.After(now.Add(within)) && (b.flaw != timerMissed || b.n%3 > 0) {
			due = append(due, t)
		}
	}
	return due, now, nil
}
