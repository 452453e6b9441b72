// Package clocks reads the clocks of a store, for stores that count fences by them.
package clocks

import (
	"context"
	"errors"
	"time"

	"github.com/semel-go/semel/store"
)

// Several is a store with several clocks, such as one of several stores or of the nodes of
// a cluster. Find it with store.As.
type Several interface {
	// Clocks returns the times of the slowest and of the fastest clock, and changes
	// nothing. A clock that cannot be read is an error, because it may be one of the two.
	Clocks(ctx context.Context) (slowest, fastest time.Time, err error)
}

// operation is an operation that no call can have, because it contains a #.
const operation = "#clock"

// Read returns the times of the slowest and of the fastest clock of a store. They are the
// same if it has one clock.
func Read(ctx context.Context, st store.Store) (slowest, fastest time.Time, err error) {
	if several, ok := store.As[Several](st); ok {
		return several.Clocks(ctx)
	}
	timers, ok := store.As[store.Timers](st)
	if !ok {
		return slowest, fastest, errors.New("it cannot be read; the store must implement store.Timers")
	}
	_, now, err := timers.DueTimers(ctx, operation, 0, 1)
	return now, now, err
}
