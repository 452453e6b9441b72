package pgstore

import (
	"testing"
	"time"
)

// waitFor polls for an event.
func waitFor(t testing.TB, what string, is func() bool) {
	t.Helper()
	for start := time.Now(); !is(); <-time.After(5 * time.Millisecond) {
		if time.Since(start) > 2*time.Minute {
			t.Fatalf("it does not come to this: %s", what)
		}
	}
}
