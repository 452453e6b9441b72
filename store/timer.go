package store

import (
	"context"
	"time"
)

// Timer says when somebody has to look at a record again. It is kept beside the record,
// which does not change with it: a timer may be early, and there may be a timer whose
// record is gone, so read the record before you act.
type Timer struct {
	Key Key
	// Version is another one after each change. Most are random.
	Version Owner
	// Due is a time of the store's clock.
	Due time.Time
}

// Timers is a store that keeps timers, and finds those that are due by an index: the
// others are not read. It is optional. Package saga needs it.
type Timers interface {
	// SetTimer makes the timer of a key due after wait from now, by the store's clock,
	// in one atomic step, and gives it the version next. If seen is the zero Owner,
	// SetTimer makes the timer if there is none, and changes any that there is. With
	// another seen it changes only a timer of that version. It reports whether the timer
	// has the version next now, so that the same change may be sent again.
	SetTimer(ctx context.Context, k Key, seen, next Owner, wait time.Duration) (set bool, err error)

	// DropTimer removes the timer of a key if it has the version seen. It is harmless
	// to repeat.
	DropTimer(ctx context.Context, k Key, seen Owner) error

	// DueTimers returns the timers of an operation that are due now, or within the given
	// time: the earliest first, and at most limit, which is at least 1. now is the
	// store's clock. A timer that cannot be read does not count for limit: with its error,
	// which wraps ErrCorrupt, DueTimers returns the others.
	DueTimers(ctx context.Context, operation string, within time.Duration, limit int) (due []Timer, now time.Time, err error)
}
