package store

import (
	"fmt"
	"time"
)

// Action is what a call has to do about the record that it found.
type Action uint8

const (
	// Execute: nothing stands in the way. Swap to Processing, then run.
	Execute Action = iota + 1
	// TakeOver: a claim has lapsed and may be run again. Swap, then run.
	TakeOver
	// Replay: give the kept outcome.
	Replay
	// ReplayFailure: give the kept failure.
	ReplayFailure
	// InProgress: somebody holds it, or the next attempt is not due.
	InProgress
	// Mismatch: the key was used with another payload.
	Mismatch
	// Unverifiable: whether the payloads agree cannot be told, for the
	// fingerprints were made in different ways or the secret is not known.
	Unverifiable
	// DoPark: a claim has lapsed and must not run again. Swap to Unknown.
	DoPark
	// Parked: the outcome is not known.
	Parked
	// Exhausted: no attempt is left. Swap to Failed, or under Park to Unknown.
	Exhausted
	// Expired: what the call's token speaks of is over.
	Expired
	// Corrupt: the record makes no sense. Touch nothing.
	Corrupt
)

var actionNames = [...]string{
	Execute: "execute", TakeOver: "take over", Replay: "replay", ReplayFailure: "replay failure", InProgress: "in progress",
	Mismatch: "mismatch", Unverifiable: "unverifiable", DoPark: "park", Parked: "parked", Exhausted: "exhausted", Expired: "expired", Corrupt: "corrupt",
}

// String is the action in words.
func (a Action) String() string {
	if a < Execute || a > Corrupt {
		return fmt.Sprintf("Action(%d)", uint8(a))
	}
	return actionNames[a]
}

// Call is what Decide has to know of a call.
type Call struct {
	Policy Policy
	// Fingerprint is made in the way, and with the secret, that the record's
	// was, if the caller can.
	Fingerprint Fingerprint
	// MaxAttempts is how often a handler may start; zero: any number.
	MaxAttempts int
	// Token is set for the bearer of a reservation: Created of the record
	// that was reserved. Its payload was compared then.
	Token time.Time
}

// Decision is what Decide found.
type Decision struct {
	Action Action
	// Policy is the stricter of the record's and the call's: what the next
	// claim is made with.
	Policy Policy
	// Until is when an InProgress call may try again, at the latest.
	Until time.Time
	// Restart: the record has expired, and counts as absent.
	Restart bool
}

// Decide says what a call has to do about a record at now, which is the
// store's clock of the same read. It is pure, and the only place that
// classifies: nothing else may look at a record's state to choose between
// running and not running.
func Decide(r *Record, c *Call, now time.Time) Decision {
	waits := r.State == Started || r.State == Processing
	if !r.State.Valid() || r.Policy > Park || r.Until.IsZero() && (waits || r.State == Released) || r.Expires.IsZero() != (waits || r.State == Unknown) {
		return Decision{Action: Corrupt, Policy: Park}
	}
	bearer := !c.Token.IsZero()
	if bearer && !r.Created.Equal(c.Token) {
		return Decision{Action: Expired, Policy: c.Policy}
	}
	if r.Expired(now) {
		if bearer {
			return Decision{Action: Expired, Policy: c.Policy}
		}
		return Decision{Action: Execute, Policy: c.Policy, Restart: true}
	}
	d := Decision{Policy: min(r.Policy.Stricter(c.Policy), Park)}
	if !bearer {
		if !r.Fingerprint.Comparable(c.Fingerprint) {
			d.Action = Unverifiable
			return d
		}
		if !r.Fingerprint.Equal(c.Fingerprint) {
			d.Action = Mismatch
			return d
		}
	}
	d.Action, d.Until = byState(r, c, d.Policy, now)
	return d
}

func byState(r *Record, c *Call, p Policy, now time.Time) (Action, time.Time) {
	switch r.State {
	case Completed:
		return Replay, time.Time{}
	case Failed:
		return ReplayFailure, time.Time{}
	case Unknown:
		return Parked, time.Time{}
	case Started:
		if !c.Token.IsZero() || r.Lapsed(now) {
			return first(r, c, p), time.Time{}
		}
	case Released:
		if a := first(r, c, p); a == DoPark || !now.Before(r.Until) {
			return a, time.Time{}
		}
	case Processing:
		if r.Lapsed(now) {
			if p == Park {
				return DoPark, time.Time{}
			}
			return next(r, c, TakeOver), time.Time{}
		}
	}
	return InProgress, r.Until
}

// first is what to do where no claim stands in the way. Failed attempts under
// Retry were doubt, which Park must not repeat, and a reservation since then
// has not answered it.
func first(r *Record, c *Call, p Policy) Action {
	if p == Park && r.Policy == Retry && r.Attempt > 0 {
		return DoPark
	}
	return next(r, c, Execute)
}

// next is a, if an attempt is left.
func next(r *Record, c *Call, a Action) Action {
	if c.MaxAttempts > 0 && r.Attempt >= c.MaxAttempts {
		return Exhausted
	}
	return a
}
