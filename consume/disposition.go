package consume

import (
	"errors"
	"time"

	"github.com/semel-go/semel"
	"github.com/semel-go/semel/driver"
	"github.com/semel-go/semel/store"
)

// Action is what is done with a message. The zero Action keeps it.
type Action uint8

const (
	// Hold: it is nobody's fault. Keep the message where it is, and look
	// again after Delay.
	Hold Action = iota
	// Ack: it is done with.
	Ack
	// Retry: it failed; run it again after Delay.
	Retry
	// DeadLetter: copy it to the dead letters, then ack.
	DeadLetter
	// Park: copy it to the parked messages, then ack. Nobody knows whether
	// its effect happened, or it would not be safe to find out by running it.
	Park
)

// String is the action in words.
func (a Action) String() string {
	switch a {
	case Hold:
		return "hold"
	case Ack:
		return "ack"
	case Retry:
		return "retry"
	case DeadLetter:
		return "dead-letter"
	case Park:
		return "park"
	}
	return "invalid"
}

// Reason says why, for programs: it is stable, and a header of dead letters.
type Reason string

// The reasons.
const (
	ReasonDone             Reason = "done"                 // Ack: it ran
	ReasonDuplicate        Reason = "duplicate"            // Ack: it had run
	ReasonFailed           Reason = "failed"               // the handler's Failure, now or then
	ReasonExhausted        Reason = "attempts_exhausted"   // MaxAttempts
	ReasonDeliveries       Reason = "deliveries_exhausted" // MaxDeliveries
	ReasonMismatch         Reason = "payload_mismatch"     // the key was used with another payload
	ReasonInvalid          Reason = "invalid_call"         // the key or the call is wrong
	ReasonNoKey            Reason = "no_key"               // no source had one
	ReasonExpired          Reason = "reservation_expired"  // the token's reservation is over
	ReasonUnknown          Reason = "outcome_unknown"      // Park: the Guard has parked the key
	ReasonUnverifiable     Reason = "payload_unverifiable" // Park: the secret of its payload's hash is missing
	ReasonCorrupt          Reason = "record_corrupt"       // Park: the record cannot be read
	ReasonLate             Reason = "older_than_retention" // Park: whether it had run is no longer known
	ReasonInProgress       Reason = "in_progress"          // Hold: it runs elsewhere
	ReasonLeaseLost        Reason = "lease_lost"           // Hold: another may have taken over
	ReasonUnavailable      Reason = "store_unavailable"    // Hold: the store did not answer
	ReasonRejected         Reason = "rejected"             // Hold: Reject stops the consumer
	ReasonError            Reason = "error"                // Retry: the handler's error
	ReasonDoneButNotStored Reason = "outcome_not_stored"   // Ack: it ran, but a duplicate may run again
)

// Disposition is what becomes of a message, and why.
type Disposition struct {
	Action Action
	Reason Reason
	// Delay is how long to wait before a Hold or Retry ends.
	Delay time.Duration
	// Attempt is which run of the handler this was; zero: it did not run.
	Attempt int
	// Err is what the run returned; nil if all is well.
	Err error
}

// Run is what is known of one try to run a message.
type Run struct {
	// Err is what the Runner returned; or, if there was no run, the CallFunc's
	// ErrNoKey or ErrRejected.
	Err error
	// Replayed: the handler did not run, and an earlier result was given.
	Replayed bool
	// Handlers: Err is the handler's own error, and not the Runner's. It may
	// hold errors of package semel that speak of another call. Of one that says
	// semel.NoEffect, Err is best what the handler returned: a Runner passes it
	// on without that.
	Handlers bool
	// Attempt is the number of the handler's run; zero: it did not run.
	Attempt int
	// Tries counts the tries before this one since the message was delivered.
	Tries int
}

// Decide says what becomes of a message: the one table of this package, and
// pure. The package's documentation shows it. For those who write loops of
// their own; a Consumer calls it. Nil o means the defaults.
func Decide(r Run, o *Options) Disposition {
	opt := o.withDefaults()
	d := opt.decide(r)
	d.Attempt, d.Err = r.Attempt, r.Err
	return d
}

func (o *Options) decide(r Run) Disposition {
	if r.Err == nil && r.Replayed {
		return Disposition{Action: Ack, Reason: ReasonDuplicate}
	}
	if r.Err == nil {
		return Disposition{Action: Ack, Reason: ReasonDone}
	}
	if !r.Handlers && errors.Is(r.Err, ErrRejected) {
		return Disposition{Action: Hold, Reason: ReasonRejected, Delay: lastLook}
	}
	if !r.Handlers && errors.Is(r.Err, ErrNoKey) {
		return Disposition{Action: DeadLetter, Reason: ReasonNoKey}
	}
	if e, ok := errors.AsType[*semel.Error](r.Err); ok && !r.Handlers {
		return o.decideReason(r, e)
	}
	if r.Handlers && driver.IsNoEffect(r.Err) { // a Failure in it is not kept: it may be that of a call of the handler's
		return o.retry(r)
	}
	if f, ok := errors.AsType[*semel.Failure](r.Err); ok && f != nil {
		return o.decideFailure(f)
	}
	if !r.Handlers && errors.Is(r.Err, store.ErrCorrupt) { // a kept failure that cannot be read
		return Disposition{Action: Park, Reason: ReasonCorrupt}
	}
	return o.retry(r)
}

func (o *Options) retry(r Run) Disposition {
	return Disposition{Action: Retry, Reason: ReasonError, Delay: max(0, o.Backoff(max(1, r.Attempt)))}
}

func (o *Options) decideFailure(f *semel.Failure) Disposition {
	d := Disposition{Action: DeadLetter, Reason: ReasonFailed}
	if f.Code == semel.CodeAttemptsExhausted {
		d.Reason = ReasonExhausted
		return d
	}
	if o.AckFailures {
		d.Action = Ack
	}
	return d
}

// decideReason is the table for what the Runner says.
func (o *Options) decideReason(r Run, e *semel.Error) Disposition {
	is := func(reason error) bool { return errors.Is(e.Reason, reason) }
	switch {
	case is(semel.ErrInProgress), is(semel.ErrReleased):
		return Disposition{Action: Hold, Reason: ReasonInProgress, Delay: look(r.Tries, e.RetryAfter)}
	case is(semel.ErrLeaseLost):
		return Disposition{Action: Hold, Reason: ReasonLeaseLost, Delay: look(r.Tries, 0)}
	case is(semel.ErrNotKept):
		return Disposition{Action: Ack, Reason: ReasonDuplicate}
	case is(semel.ErrMismatch):
		return Disposition{Action: DeadLetter, Reason: ReasonMismatch}
	case is(semel.ErrUnverifiable):
		return Disposition{Action: Park, Reason: ReasonUnverifiable}
	case is(semel.ErrParked):
		return Disposition{Action: Park, Reason: ReasonUnknown}
	case is(semel.ErrExpired):
		return Disposition{Action: DeadLetter, Reason: ReasonExpired}
	case is(semel.ErrOutcomeNotStored):
		// To run it again would surely double the effect; a duplicate only might.
		if f, ok := errors.AsType[*semel.Failure](e); ok && f != nil {
			return o.decideFailure(f)
		}
		return Disposition{Action: Ack, Reason: ReasonDoneButNotStored}
	case is(store.ErrCorrupt):
		return Disposition{Action: Park, Reason: ReasonCorrupt}
	case is(semel.ErrUnavailable), is(semel.ErrCanceled):
		if r.Attempt > 0 { // it ran, and its transaction did not commit: that may be its own doing
			return o.retry(r)
		}
		return Disposition{Action: Hold, Reason: ReasonUnavailable, Delay: look(r.Tries, 0)}
	}
	return Disposition{Action: DeadLetter, Reason: ReasonInvalid}
}

// The first and the longest pause between two looks at a key that is in
// flight elsewhere.
const (
	firstLook = 20 * time.Millisecond
	lastLook  = time.Second
)

// look is when to look again: soon at first, and never later than the Runner
// says, if it says so.
func look(tries int, atMost time.Duration) time.Duration {
	d := min(firstLook<<min(tries, 10), lastLook)
	if atMost > 0 {
		d = min(d, max(atMost, time.Millisecond))
	}
	return d
}
