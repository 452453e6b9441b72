package semel

import (
	"context"
	"fmt"
	"log/slog"
	"time"
)

// Event is something that happened to a call. It holds no key and no payload.
type Event struct {
	Kind      Kind
	Operation Operation
	Tenant    string
	// Key is the first 8 hexadecimal digits of the key's hash.
	Key     string
	Policy  Policy
	Attempt int
	// Took is how long the handler ran, for events that end a run; else zero.
	Took time.Duration
	Err  error
}

// Kind is what kind of an Event.
type Kind uint8

// The kinds. Those of the first group tell how a call ended: one for each, but
// that EventUnprotected comes after the EventStoreFailed that led to it, and an
// invalid call has none. In a transaction they come before the commit. The
// others tell what happened on the way, or in the background.
const (
	EventExecuted        Kind = iota + 1 // the handler ran and its result is kept
	EventFailed                          // the handler ran and its failure is kept
	EventReleased                        // the handler ran; nothing is kept, and it may run again
	EventParked                          // the handler ran, and the outcome is not known
	EventReplayed                        // a duplicate got the kept result
	EventFailureReplayed                 // a duplicate got the kept failure
	EventBusy                            // a duplicate was told to come again
	EventMismatch                        // a key was used with another payload
	EventParkedRefused                   // a duplicate of a parked call was refused
	EventRefused                         // the call was refused for another reason: see Err
	EventStoreFailed                     // the store did not answer, and the handler did not run
	EventLeaseLost                       // the handler ran, but another may have taken over
	EventNotStored                       // the handler ran, but its outcome could not be stored
	EventUnprotected                     // the handler ran without a record, for the store did not answer

	EventTakenOver    // a lapsed claim was taken over: its holder died or froze
	EventLapsedParked // a lapsed claim, or one that had failed under Retry, was parked
	EventExhausted    // a key has used all its attempts
	EventReconciled   // a parked call was reconciled, or resolved by an operator
	EventUndecided    // a parked call was asked after, and is still unknown
	EventAbandoned    // a claim whose caller had left was given back
	EventRecovered    // a sweep turned a lapsed claim into a released or unknown one
)

var kindNames = [...]string{
	EventExecuted: "executed", EventFailed: "failed", EventReleased: "released", EventParked: "parked", EventReplayed: "replayed",
	EventFailureReplayed: "failure replayed", EventBusy: "busy", EventMismatch: "mismatch", EventParkedRefused: "parked refused",
	EventRefused: "refused", EventStoreFailed: "store failed", EventLeaseLost: "lease lost", EventNotStored: "not stored",
	EventUnprotected: "unprotected", EventTakenOver: "taken over", EventLapsedParked: "lapsed parked", EventExhausted: "exhausted",
	EventReconciled: "reconciled", EventUndecided: "undecided", EventAbandoned: "abandoned", EventRecovered: "recovered",
}

// String is the kind in words.
func (k Kind) String() string {
	if k < EventExecuted || int(k) >= len(kindNames) {
		return fmt.Sprintf("Kind(%d)", uint8(k))
	}
	return kindNames[k]
}

// level is how much an operator wants to know of it.
func (k Kind) level() slog.Level {
	switch k {
	case EventParked, EventLapsedParked, EventStoreFailed, EventLeaseLost, EventNotStored, EventUnprotected, EventExhausted:
		return slog.LevelWarn
	case EventMismatch, EventTakenOver, EventReconciled, EventUndecided, EventRecovered, EventRefused:
		return slog.LevelInfo
	}
	return slog.LevelDebug
}

// LogEvents is an Options.Observe that logs: doubt and trouble as warnings,
// recoveries and refusals as information, the rest for debugging. Nil:
// slog.Default().
func LogEvents(l *slog.Logger) func(context.Context, Event) {
	if l == nil {
		l = slog.Default()
	}
	return func(ctx context.Context, e Event) {
		level := e.Kind.level()
		if !l.Enabled(ctx, level) {
			return
		}
		attrs := []slog.Attr{
			slog.String("operation", string(e.Operation)), slog.String("tenant", e.Tenant), slog.String("key", e.Key),
			slog.String("policy", e.Policy.String()), slog.Int("attempt", e.Attempt),
		}
		if e.Took > 0 {
			attrs = append(attrs, slog.Duration("took", e.Took))
		}
		if e.Err != nil {
			attrs = append(attrs, slog.Any("error", e.Err))
		}
		l.LogAttrs(ctx, level, "semel: "+e.Kind.String(), attrs...)
	}
}
