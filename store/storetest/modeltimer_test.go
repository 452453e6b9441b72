package storetest

import (
	"context"
	"slices"
	"time"

	"github.com/semel-go/semel/store"
)

// timed is a model that keeps timers, perhaps with a bug.
type timed struct {
	*hooks
	timers map[store.Key]store.Timer
	flaw   timerFlaw
}

// timerFlaw is a bug in the model's timers.
type timerFlaw struct {
	early, anyVersion, anyDrop, noResend, makesAbsent, movesAgain bool
	keepsAny, noDrop, unsorted, noLimit, oneOperation, noTenant   bool
	withRecord, noContext, ignoresWithin                          bool
}

func (t *timed) at(k store.Key) store.Key {
	if t.flaw.noTenant {
		k.Tenant = ""
	}
	return k
}

func (t *timed) SetTimer(ctx context.Context, k store.Key, seen, next store.Owner, wait time.Duration) (bool, error) {
	if err := ctx.Err(); err != nil && !t.flaw.noContext {
		return false, err
	}
	t.mu.Lock()
	defer t.mu.Unlock()
	f := t.flaw
	old, exists := t.timers[t.at(k)]
	if f.early {
		wait = 0
	}
	isAny := seen == store.Owner{}
	switch {
	case isAny && exists && f.keepsAny:
		return true, nil
	case isAny, old.Version == seen, f.anyVersion && exists, f.makesAbsent && !exists, f.movesAgain && old.Version == next:
	default:
		return exists && old.Version == next && !f.noResend, nil
	}
	t.timers[t.at(k)] = store.Timer{Key: k, Version: next, Due: when(t.model.clock() + wait.Microseconds())}
	return true, nil
}

func (t *timed) DropTimer(ctx context.Context, k store.Key, seen store.Owner) error {
	if err := ctx.Err(); err != nil && !t.flaw.noContext {
		return err
	}
	t.mu.Lock()
	defer t.mu.Unlock()
	if (t.timers[t.at(k)].Version == seen || t.flaw.anyDrop) && !t.flaw.noDrop {
		delete(t.timers, t.at(k))
	}
	return nil
}

func (t *timed) DueTimers(ctx context.Context, operation string, within time.Duration, limit int) ([]store.Timer, time.Time, error) {
	if err := ctx.Err(); err != nil {
		return nil, time.Time{}, err
	}
	t.mu.Lock()
	defer t.mu.Unlock()
	now := when(t.model.clock())
	var due []store.Timer
	for _, timer := range t.timers {
		if t.flaw.withRecord {
			if w, ok := t.model.at.rows[timer.Key]; ok && w.state.Terminal() {
				continue
			}
		}
		if (timer.Key.Operation == operation || t.flaw.oneOperation) && (!timer.Due.After(now.Add(within)) || t.flaw.ignoresWithin) {
			due = append(due, timer)
		}
	}
	slices.SortFunc(due, func(a, b store.Timer) int {
		if t.flaw.unsorted {
			return b.Due.Compare(a.Due)
		}
		return a.Due.Compare(b.Due)
	})
	if !t.flaw.noLimit {
		due = due[:min(limit, len(due))]
	}
	return due, now, nil
}

func untimely(f timerFlaw) func(m *model) *hooks {
	return func(m *model) *hooks { return &hooks{model: m, timers: &f} }
}

var timerMutants = []mutant{
	{"a timer is due at once", "timers", untimely(timerFlaw{early: true})},
	{"a timer of any version is changed", "timers", untimely(timerFlaw{anyVersion: true})},
	{"a timer of any version is dropped", "timers", untimely(timerFlaw{anyDrop: true})},
	{"a change that is sent again is refused", "timers", untimely(timerFlaw{noResend: true})},
	{"a change makes an absent timer", "timers", untimely(timerFlaw{makesAbsent: true})},
	{"a change that is sent again moves the timer", "timers", untimely(timerFlaw{movesAgain: true})},
	{"a timer that is there is not changed without a version", "timers", untimely(timerFlaw{keepsAny: true})},
	{"a dropped timer stays", "timers", untimely(timerFlaw{noDrop: true})},
	{"the latest timers come first", "timers", untimely(timerFlaw{unsorted: true})},
	{"the limit is ignored", "timers", untimely(timerFlaw{noLimit: true})},
	{"operations share timers", "timers", untimely(timerFlaw{oneOperation: true})},
	{"tenants share timers", "timers", untimely(timerFlaw{noTenant: true})},
	{"a timer goes with its record", "timers", untimely(timerFlaw{withRecord: true})},
	{"a timer is changed although its context has ended", "timers", untimely(timerFlaw{noContext: true})},
	{"timers that are not due are returned", "timers", untimely(timerFlaw{ignoresWithin: true})},
}
