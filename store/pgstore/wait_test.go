package pgstore

import (
	"testing"
	"time"
)

// waitFor polls for an event.
func waitFor(t testing.TB, what string, condition func() bool) {
	t.Helper()
	for start := time.Now(); !condition(); <-time.After(5 * time.Millisecond) {
		if time.Since(start) > 2*time.Minute {
			t.Fatalf("it does not come to this: %s", what)
		}
	}
}
