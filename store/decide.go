package store

import (
	"fmt"
	"time"
)

// Action is what a call has to do about a record.
type Action uint8

const (
	// Execute: no claim is in the way. Swap to Processing, then run.
	Execute Action = iota + 1
	// TakeOver: a claim has lapsed and may be run again. Swap, then run.
	TakeOver
	// Replay: return the kept outcome.
	Replay
	// ReplayFailure: return the kept failure.
	ReplayFailure
	// InProgress: a claim is live, or the next attempt is not due.
	InProgress
	// Mismatch: the key was used with another payload.
	Mismatch
	// Unverifiable: the payloads cannot be compared, because the fingerprints
	// were made in different ways or the secret is not known.
	Unverifiable
	// DoPark: a claim has lapsed and must not run again. Swap to Unknown.
	DoPark
	// Parked: it is not known whether the effect happened.
	Parked
	// Exhausted: no attempt is left. Swap to Failed, or under Park to Unknown.
	Exhausted
	// Expired: the reservation of the call's token has ended.
	Expired
	// Corrupt: the record contradicts itself. Change nothing.
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

// Call is the part of a call that Decide uses.
type Call struct {
	Policy Policy
	// Fingerprint is made in the same way and with the same secret as the
	// record's, if the caller has the secret.
	Fingerprint Fingerprint
	// MaxAttempts is how often a handler may start. Zero: no limit.
	MaxAttempts int
	// Token is Created of the reserved record, if the call has redeemed the token
	// of a reservation. Its payload was compared when it was reserved.
	Token time.Time
}

// Decision is the result of Decide.
type Decision struct {
	Action Action
	// Policy is the stricter of the record's and the call's. Make the next claim
	// with it.
	Policy Policy
	// Until is the latest time at which an InProgress call may try again.
	Until time.Time
	// Restart is true if the record has expired and so counts as absent.
	Restart bool
}

// Decide says what a call has to do about a record. now is the store's clock from
// the same read. Decide is a pure function, and the only place that judges: no
// other code may look at a record's state to choose between running a handler and
// not running it.
func Decide(r *Record, c *Call, now time.Time) Decision {
	// A held or released record has an Until. A released or terminal record has an Expires.
	held := r.State == Started || r.State == Processing
	if !r.State.Valid() || r.Policy > Park || r.Until.IsZero() && (held || r.State == Released) || r.Expires.IsZero() != (held || r.State == Unknown) {
		return Decision{Action: Corrupt, Policy: Park}
	}
	hasToken := !c.Token.IsZero()
	if hasToken && !r.Created.Equal(c.Token) {
		return Decision{Action: Expired, Policy: c.Policy}
	}
	if r.Expired(now) {
		if hasToken {
			return Decision{Action: Expired, Policy: c.Policy}
		}
		return Decision{Action: Execute, Policy: c.Policy, Restart: true}
	}
	d := Decision{Policy: min(r.Policy.Stricter(c.Policy), Park)}
	if !hasToken && r.Fingerprint.Alg != AnyPayload {
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
			return startAction(r, c, p), time.Time{}
		}
	case Released:
		if a := startAction(r, c, p); a == DoPark || !now.Before(r.Until) {
			return a, time.Time{}
		}
	case Processing:
		if r.Lapsed(now) {
			if p == Park {
				return DoPark, time.Time{}
			}
			return ifAttemptLeft(r, c, TakeOver), time.Time{}
		}
	}
	return InProgress, r.Until
}

// startAction decides about a record without a live claim. If an attempt failed
// under Retry, its effect is in doubt, so a call under Park must not run again. A
// reservation made since then does not remove the doubt.
func startAction(r *Record, c *Call, p Policy) Action {
	if p == Park && r.Policy == Retry && r.Attempt > 0 {
		return DoPark
	}
	return ifAttemptLeft(r, c, Execute)
}

// ifAttemptLeft returns a, or Exhausted if no attempt is left.
func ifAttemptLeft(r *Record, c *Call, a Action) Action {
	if c.MaxAttempts > 0 && r.Attempt >= c.MaxAttempts {
		return Exhausted
	}
	return a
}
