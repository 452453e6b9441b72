package moved

import (
	"context"
	"fmt"
	"time"

	"github.com/semel-go/semel/internal/clocks"
	"github.com/semel-go/semel/store"
)

// MaxClockWait is the longest time by which the clock of the new store may be slower than
// the old store's. New waits for that time. A fence is the time of a claim, so a slow clock
// would give a key a lower fence than it had in the old store.
const MaxClockWait = time.Minute

// waitForClock waits until the new store's clock is past the old one's: if there are
// several, the new store's slowest clock is past the old store's fastest.
func waitForClock(ctx context.Context, to, from store.Store) error {
	_, old, err := clocks.Read(ctx, from)
	if err != nil {
		return fmt.Errorf("moved: read the clock of the old store: %w", err)
	}
	for {
		now, _, err := clocks.Read(ctx, to)
		if err != nil {
			return fmt.Errorf("moved: read the clock of the new store: %w", err)
		}
		if now.After(old) {
			return nil
		}
		behind := old.Sub(now)
		if behind > MaxClockWait {
			return fmt.Errorf("moved: the clock of the new store is %v behind the old one's; the limit is %v; set the clock of its server, or with DynamoDB lower Options.MaxSkew, so that fences grow", behind.Round(time.Millisecond), MaxClockWait)
		}
		if err := sleep(ctx, behind+time.Microsecond); err != nil {
			return err
		}
	}
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
