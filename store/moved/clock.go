package moved

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/semel-go/semel/store"
)

// MaxClockWait is the longest time by which the clock of the new store may be slower than
// the old store's. New waits for that time. A fence is the time of a claim, so a slow clock
// would give a key a lower fence than it had in the old store.
const MaxClockWait = time.Minute

// clockOperation is an operation that no call can have, because it contains a #.
const clockOperation = "#clock"

// severalClocks is a store of several stores, each with a clock of its own, as package
// shardstore makes it.
type severalClocks interface {
	// LatestClock is the time of the fastest clock. It changes nothing.
	LatestClock(ctx context.Context) (time.Time, error)
}

// waitForClock waits until the new store's clock is past the old one's: if there are
// several, the new store's slowest clock is past the old store's fastest.
func waitForClock(ctx context.Context, to, from store.Store) error {
	old, err := latestClock(ctx, from)
	for err == nil {
		var now time.Time
		if now, err = clockOf(ctx, to, "new"); err != nil || now.After(old) {
			break
		}
		behind := old.Sub(now)
		if behind > MaxClockWait {
			return fmt.Errorf("moved: the clock of the new store is %v behind the old one's; the limit is %v; set the clock of its server, so that fences grow", behind.Round(time.Millisecond), MaxClockWait)
		}
		err = sleep(ctx, behind+time.Microsecond)
	}
	return err
}

// latestClock reads the fastest clock of the old store.
func latestClock(ctx context.Context, from store.Store) (time.Time, error) {
	several, ok := store.As[severalClocks](from)
	if !ok {
		return clockOf(ctx, from, "old")
	}
	now, err := several.LatestClock(ctx)
	if err != nil {
		return time.Time{}, fmt.Errorf("moved: read the clocks of the old store: %w", err)
	}
	return now, nil
}

// clockOf reads the clock of a store, the slowest if it has several, and changes nothing.
func clockOf(ctx context.Context, st store.Store, which string) (time.Time, error) {
	t, ok := store.As[store.Timers](st)
	if !ok {
		return time.Time{}, errors.New("moved: the clock of the " + which + " store cannot be read; it must implement store.Timers")
	}
	_, now, err := t.DueTimers(ctx, clockOperation, 0, 1)
	if err != nil {
		return time.Time{}, fmt.Errorf("moved: read the clock of the %s store: %w", which, err)
	}
	return now, nil
}

func sleep(ctx context.Context, d time.Duration) error {
	t := time.NewTimer(d)
	defer t.Stop()
	select {
	case <-t.C:
		return nil
	case <-ctx.Done():
		return context.Cause(ctx)
	}
}
