package semelamqp

import (
	"math"
	"testing"
	"time"
)

// A retry must not come before the pause that a handler's error names (RetryAfter).
func TestLevel_IsTheNextOne(t *testing.T) {
	for d, want := range map[time.Duration]time.Duration{
		1: firstLevel, 150 * time.Millisecond: firstLevel, 250 * time.Millisecond: firstLevel, 251 * time.Millisecond: 500 * time.Millisecond,
		500 * time.Millisecond: 500 * time.Millisecond, 750 * time.Millisecond: time.Second, time.Second: time.Second, time.Second + 1: 2 * time.Second,
		45 * time.Second: 64 * time.Second, 5 * time.Minute: 512 * time.Second, 225 * time.Second: 256 * time.Second,
		30 * time.Hour: lastLevel, lastLevel: lastLevel, math.MaxInt64: lastLevel,
	} {
		if got := level(d); got != want {
			t.Errorf("%v: %v, want %v", d, got, want)
		}
	}
	for d := firstLevel; d < lastLevel; d += d/7 + 1 {
		if l := level(d); l < d || l >= 2*d {
			t.Fatalf("%v: the level is %v", d, l)
		}
	}
}

// The pauses of consume.Backoff have few queues.
func TestLevel_DefaultBackoff_NeedsFewQueues(t *testing.T) {
	seen := map[time.Duration]bool{}
	for n := range 20 {
		full := min(time.Second<<min(n, 10), 5*time.Minute)
		for d := full * 3 / 4; d <= full; d += full / 50 {
			seen[level(d)] = true
		}
	}
	if len(seen) > 10 {
		t.Errorf("%d queues: %v", len(seen), seen)
	}
}
