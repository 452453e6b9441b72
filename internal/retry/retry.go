// Package retry repeats requests that a store did not answer.
package retry

import (
	"context"
	"errors"
	"math/rand/v2"
	"time"

	"github.com/semel-go/semel/store"
)

// longestPause is so short that one and a half times as much fits in a time.Duration.
const longestPause = 100 * 365 * 24 * time.Hour

// pauses come between the attempts to send one request.
var pauses = [...]time.Duration{5 * time.Millisecond, 25 * time.Millisecond, 100 * time.Millisecond}

// Do calls f up to four times, until the store answers or ctx ends. The request
// must be harmless to repeat: a read, or a change that its own owner wins again.
func Do(ctx context.Context, f func() (store.Found, error)) (store.Found, error) {
	for attempt := 0; ; attempt++ {
		found, err := f()
		if err == nil || Answered(err) || attempt == len(pauses) || !Pause(ctx, pauses[attempt]) {
			return found, err
		}
	}
}

// Ask sends a request as Do does, and ends when limit is over. The request must be harmless
// to repeat.
func Ask(ctx context.Context, limit time.Duration, send func(ctx context.Context) error) error {
	ctx, cancel := context.WithTimeout(ctx, limit)
	defer cancel()
	_, err := Do(ctx, func() (store.Found, error) { return store.Found{}, send(ctx) })
	return err
}

// Answered reports whether err is the store's answer. Every other error means
// that the store did not answer.
func Answered(err error) bool {
	return errors.Is(err, store.ErrNotFound) || errors.Is(err, store.ErrCorrupt) || errors.Is(err, store.ErrLeaseLost)
}

// Pause sleeps for a random time from d/2 to 3d/2. It reports false if ctx ended
// first.
func Pause(ctx context.Context, d time.Duration) bool {
	d = min(d, longestPause)
	timer := time.NewTimer(d/2 + rand.N(d))
	defer timer.Stop()
	select {
	case <-ctx.Done():
		return false
	case <-timer.C:
		return true
	}
}
