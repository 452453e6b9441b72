package shardstore

import (
	"context"
	"errors"
	"slices"
	"time"

	"github.com/semel-go/semel/store"
)

// timers keeps the timer of a record in the record's shard. If one shard keeps no
// timers, the store keeps none.
type timers struct {
	*Store
	rest   store.Store
	timers []store.Timers
}

func (t timers) Unwrap() store.Store { return t.rest }

// SetTimer implements store.Timers.
func (t timers) SetTimer(ctx context.Context, k store.Key, seen, next store.Owner, wait time.Duration) (bool, error) {
	i := t.shardOf(k)
	set, err := t.timers[i].SetTimer(ctx, k, seen, next, wait)
	return set, t.shards[i].wrap(err)
}

// DropTimer implements store.Timers.
func (t timers) DropTimer(ctx context.Context, k store.Key, seen store.Owner) error {
	i := t.shardOf(k)
	return t.shards[i].wrap(t.timers[i].DropTimer(ctx, k, seen))
}

// LatestClock is the time of the fastest clock of the shards. Package moved waits for it,
// because the fences of a shard are times of its clock.
func (t timers) LatestClock(ctx context.Context) (latest time.Time, err error) {
	for i, shard := range t.timers {
		_, now, err := shard.DueTimers(ctx, "#clock", 0, 1) // no call has such an operation
		if err != nil {
			return time.Time{}, t.shards[i].wrap(err)
		}
		if now.After(latest) {
			latest = now
		}
	}
	return latest, nil
}

// DueTimers implements store.Timers. It asks all shards. If some do not answer, it
// returns the timers of the others with the error. The time is that of the slowest
// clock.
func (t timers) DueTimers(ctx context.Context, operation string, within time.Duration, limit int) (due []store.Timer, now time.Time, err error) {
	var errs []error
	for i, shard := range t.timers {
		found, clock, err := shard.DueTimers(ctx, operation, within, limit)
		errs = append(errs, t.shards[i].wrap(err))
		due = append(due, found...)
		if err == nil && (now.IsZero() || clock.Before(now)) {
			now = clock
		}
	}
	slices.SortStableFunc(due, func(a, b store.Timer) int { return a.Due.Compare(b.Due) })
	return due[:min(len(due), max(limit, 0))], now, errors.Join(errs...)
}
