package outbox

import (
	"context"
	"errors"
	"testing"
	"time"
)

// The timer of a frozen process has not run when its other goroutines wake.
func TestLease_TimeOverAndNoTimerHasRun_ContextHasEnded(t *testing.T) {
	l := newLease(t.Context())
	l.extend(time.Now(), time.Hour)
	ctx, cancel := l.context()
	defer cancel()
	if err := ctx.Err(); err != nil {
		t.Fatalf("during the lease: %v", err)
	}
	past := time.Now().Add(-time.Millisecond)
	l.until.Store(&past)
	if err := ctx.Err(); !errors.Is(err, errLeaseOver) {
		t.Errorf("after the lease: %v, want errLeaseOver", err)
	}
	if l.ctx.Err() != nil {
		t.Error("the timer has run; the test tests nothing")
	}
}

// The monotonic clock stands still while a machine is suspended.
func TestLease_WallClockIsPastTheEnd_HasEnded(t *testing.T) {
	l := newLease(t.Context())
	until := time.Now().Add(-time.Second).Round(0) // no monotonic reading
	l.until.Store(&until)
	if l.holds() {
		t.Error("the lease holds")
	}
}

func TestLease_Ends_ContextsEnd(t *testing.T) {
	l := newLease(t.Context())
	l.extend(time.Now(), time.Hour)
	ctx, cancel := l.context()
	defer cancel()
	l.end()
	if !errors.Is(ctx.Err(), context.Canceled) {
		t.Errorf("error %v", ctx.Err())
	}
	select {
	case <-ctx.Done():
	default:
		t.Error("Done is not closed")
	}
}
