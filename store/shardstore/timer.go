package shardstore

import (
	"cmp"
	"context"
	"errors"
	"slices"
	"time"

	"github.com/semel-go/semel/internal/clocks"
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

// Clocks implements clocks.Several: a shard may have several clocks, too. Package moved
// waits for the fastest one, because the fences of a shard are times of its clock.
func (t timers) Clocks(ctx context.Context) (slowest, fastest time.Time, err error) {
	for i := range t.shards {
		slow, fast, err := clocks.Read(ctx, t.shards[i].st)
		if err != nil {
			return time.Time{}, time.Time{}, t.shards[i].wrap(err)
		}
		if i == 0 || slow.Before(slowest) {
			slowest = slow
		}
		if fast.After(fastest) {
			fastest = fast
		}
	}
	return slowest, fastest, nil
}

// dueTimers are the timers of one shard that are due, and its clock.
type dueTimers struct {
	due []store.Timer
	now time.Time
}

// DueTimers implements store.Timers. It asks all shards concurrently, for half of the time
// that ctx has left. If some do not answer, it returns the timers of the others with the
// error; only if all answer does the error say which timers cannot be read. The time is the
// one of the slowest clock.
func (t timers) DueTimers(ctx context.Context, operation string, within time.Duration, limit int) (due []store.Timer, now time.Time, err error) {
	ctx, cancel := store.PartContext(ctx)
	defer cancel()
	answers := askEach(ctx, t.Store, t.all(), func(i int) (found dueTimers, err error) {
		found.due, found.now, err = t.timers[i].DueTimers(ctx, operation, within, limit)
		return found, err
	})
	var outages, unreadable []error
	for i := range t.shards {
		found, err := answers[i].value, answers[i].err
		if due = append(due, found.due...); err != nil && !errors.Is(err, store.ErrCorrupt) {
			outages = append(outages, err)
			continue
		}
		if unreadable = append(unreadable, err); now.IsZero() || found.now.Before(now) {
			now = found.now
		}
	}
	slices.SortStableFunc(due, func(a, b store.Timer) int { return a.Due.Compare(b.Due) })
	return due[:min(len(due), max(limit, 0))], now, cmp.Or(errors.Join(outages...), errors.Join(unreadable...))
}
