package driver

import (
	"errors"
	"log/slog"
	"time"

	"github.com/semel-go/semel"
	semeldriver "github.com/semel-go/semel/driver"
	"github.com/semel-go/semel/store"
)

// Action is what happens to a message after a try. The zero Action, Hold, keeps
// the message.
type Action uint8

const (
	// Hold keeps the message here, because the key is in progress elsewhere or
	// the store does not answer. It is tried again after Delay.
	Hold Action = iota
	// Ack ends the message: it is done.
	Ack
	// Retry runs the message again after Delay, because its handler failed.
	Retry
	// DeadLetter copies the message to the dead letters, then acks it.
	DeadLetter
	// Quarantine copies the message to the quarantine, then acks it, because
	// nobody knows whether its effect happened, and running it is not safe.
	Quarantine
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
	case Quarantine:
		return "quarantine"
	}
	return "invalid"
}

// Reason says why an action was chosen, for programs: its text is stable, and
// is the value of the header LetterReason.
type Reason string

// The reasons.
const (
	ReasonDone             Reason = "done"                 // Ack: it ran
	ReasonDuplicate        Reason = "duplicate"            // Ack: it had run before
	ReasonFailed           Reason = "failed"               // the handler's Failure, now or in an earlier run
	ReasonExhausted        Reason = "attempts_exhausted"   // MaxAttempts
	ReasonDeliveries       Reason = "deliveries_exhausted" // MaxDeliveries
	ReasonMismatch         Reason = "payload_mismatch"     // the key was used with another payload
	ReasonInvalid          Reason = "invalid_call"         // the key, the call or the message is invalid
	ReasonNoKey            Reason = "no_key"               // no source had a key
	ReasonExpired          Reason = "reservation_expired"  // the token's reservation is over
	ReasonUnknown          Reason = "outcome_unknown"      // Quarantine: the call is in doubt, and parked
	ReasonUnverifiable     Reason = "payload_unverifiable" // Quarantine: the secret of its payload's hash is missing
	ReasonCorrupt          Reason = "record_corrupt"       // Quarantine: the record cannot be read
	ReasonLate             Reason = "older_than_retention" // Quarantine: the record of a run may be deleted
	ReasonInProgress       Reason = "in_progress"          // Hold: the key runs elsewhere
	ReasonTurn             Reason = "waits_for_turn"       // Hold: the Runner takes it later; see Turn
	ReasonLeaseLost        Reason = "lease_lost"           // Hold: another worker may have taken over
	ReasonUnavailable      Reason = "store_unavailable"    // Hold: the store did not answer
	ReasonRejected         Reason = "rejected"             // Hold: Reject stops the consumer
	ReasonError            Reason = "error"                // Retry: the handler's error
	ReasonDoneButNotStored Reason = "outcome_not_stored"   // Ack: it ran, but a duplicate may run again
)

// Disposition is what happens to a message, and why.
type Disposition struct {
	Action Action
	Reason Reason
	// Delay is how long a Hold or a Retry waits. A Consumer that waits for a Turn ignores it.
	Delay time.Duration
	// Attempt is the number of the handler's run; zero: it did not run.
	Attempt int
	// Fence is the fencing token of the run; zero: it did not run.
	Fence uint64
	// Err is the error of the run; nil after a success.
	Err error
}

// The errors of a message without an idempotency key. Package consume exports
// them to its users.
var (
	ErrNoKey    = errors.New("consume: the message has no idempotency key")
	ErrRejected = errors.New("consume: a message without an idempotency key was rejected")
)

// Result is how one try to run a message ended.
type Result struct {
	// Err is the Runner's error; or, if nothing ran, ErrNoKey or ErrRejected.
	Err error
	// Replayed: the handler did not run, and Err is of an earlier run.
	Replayed bool
	// FromHandler: Err is the handler's own error, not the Runner's. It may
	// wrap errors of package semel that concern other calls. If the handler
	// returned semel.NoEffect(err), put that into Err, because a Runner removes
	// the mark.
	FromHandler bool
	// Attempt is the number of the handler's run; zero: it did not run.
	Attempt int
	// Fence is the fencing token of the handler's run; zero: it did not run.
	Fence uint64
	// Tries counts the earlier tries since the message was delivered.
	Tries int
}

// Policy is the part of a consumer's options that Decide needs.
type Policy struct {
	// Backoff is the pause after the n-th failed attempt; nil: none. If the
	// handler's error has the method RetryAfter() time.Duration, that is the pause.
	Backoff func(n int) time.Duration
	// AckFailures acks a message that ended with a *semel.Failure, unless that has
	// semel.CodeAttemptsExhausted.
	AckFailures bool
}

// Decide says what happens to a message after a try. It is the only place that
// decides, and has no side effects; the documentation of package consume shows
// it as a table. A Consumer calls it, and counts MaxAttempts itself; a loop of your own
// has to do both.
func Decide(r Result, p Policy) Disposition {
	d := p.decide(r)
	d.Attempt, d.Fence, d.Err = r.Attempt, r.Fence, r.Err
	return d
}

func (p Policy) decide(r Result) Disposition {
	if r.Err == nil && r.Replayed {
		return Disposition{Action: Ack, Reason: ReasonDuplicate}
	}
	if r.Err == nil {
		return Disposition{Action: Ack, Reason: ReasonDone}
	}
	if !r.FromHandler && errors.Is(r.Err, ErrRejected) {
		return Disposition{Action: Hold, Reason: ReasonRejected, Delay: longestHold}
	}
	if !r.FromHandler && errors.Is(r.Err, ErrNoKey) {
		return Disposition{Action: DeadLetter, Reason: ReasonNoKey}
	}
	if e, ok := errors.AsType[*semel.Error](r.Err); ok && !r.FromHandler {
		return p.decideReason(r, e)
	}
	if r.FromHandler && semeldriver.IsNoEffect(r.Err) { // a Failure in it may come from another call
		return p.retry(r)
	}
	if f, ok := asFailure(r.Err); ok {
		return p.decideFailure(f)
	}
	if !r.FromHandler && errors.Is(r.Err, store.ErrCorrupt) { // a stored failure that cannot be read
		return Disposition{Action: Quarantine, Reason: ReasonCorrupt}
	}
	return p.retry(r)
}

// delayed is an error of a handler that knows when a retry makes sense, such as an
// answer with the header Retry-After.
type delayed interface {
	error
	RetryAfter() time.Duration
}

func (p Policy) retry(r Result) Disposition {
	d := Disposition{Action: Retry, Reason: ReasonError}
	if e, ok := errors.AsType[delayed](r.Err); ok && r.FromHandler {
		if pause, ok := ask(func() time.Duration { return e.RetryAfter() }); ok {
			d.Delay = pause
			return d
		}
	}
	if p.Backoff != nil {
		pause, ok := ask(func() time.Duration { return p.Backoff(max(1, r.Attempt)) })
		if !ok {
			pause = time.Second
		}
		d.Delay = pause
	}
	return d
}

// ask calls a function of the application. ok is false if it panics, which must not end the
// process of a consumer.
func ask(fn func() time.Duration) (pause time.Duration, ok bool) {
	defer func() {
		if v := recover(); v != nil {
			slog.Error("consume: a function that returns a pause panicked", "panic", v)
			pause, ok = 0, false
		}
	}()
	return max(0, fn()), true
}

func (p Policy) decideFailure(f *semel.Failure) Disposition {
	d := Disposition{Action: DeadLetter, Reason: ReasonFailed}
	if f.Code == semel.CodeAttemptsExhausted {
		d.Reason = ReasonExhausted
		return d
	}
	if p.AckFailures {
		d.Action = Ack
	}
	return d
}

// decideReason is the part of the table for the Runner's own errors.
func (p Policy) decideReason(r Result, e *semel.Error) Disposition {
	is := func(reason error) bool { return errors.Is(e.Reason, reason) }
	switch {
	case is(semel.ErrInProgress), is(semel.ErrReleased):
		d := Disposition{Action: Hold, Reason: ReasonInProgress, Delay: holdDelay(r.Tries, e.RetryAfter)}
		if _, ok := errors.AsType[Turn](e.Cause); ok {
			d.Reason = ReasonTurn
		}
		return d
	case is(semel.ErrLeaseLost):
		return Disposition{Action: Hold, Reason: ReasonLeaseLost, Delay: holdDelay(r.Tries, 0)}
	case is(semel.ErrNotKept):
		return Disposition{Action: Ack, Reason: ReasonDuplicate}
	case is(semel.ErrMismatch):
		return Disposition{Action: DeadLetter, Reason: ReasonMismatch}
	case is(semel.ErrUnverifiable):
		return Disposition{Action: Quarantine, Reason: ReasonUnverifiable}
	case is(semel.ErrParked):
		return Disposition{Action: Quarantine, Reason: ReasonUnknown}
	case is(semel.ErrExpired):
		return Disposition{Action: DeadLetter, Reason: ReasonExpired}
	case is(semel.ErrOutcomeNotStored):
		// A second run would certainly double the effect; a duplicate only might.
		if f, ok := asFailure(e); ok {
			return p.decideFailure(f)
		}
		return Disposition{Action: Ack, Reason: ReasonDoneButNotStored}
	case is(store.ErrCorrupt):
		return Disposition{Action: Quarantine, Reason: ReasonCorrupt}
	case is(semel.ErrUnavailable), is(semel.ErrCanceled):
		// If it ran, its transaction did not commit. The handler may be the cause, unless a
		// part of the store is away.
		if r.Attempt > 0 && store.Affects(e) != store.ExtentPart {
			return p.retry(r)
		}
		return Disposition{Action: Hold, Reason: ReasonUnavailable, Delay: holdDelay(r.Tries, 0)}
	}
	return Disposition{Action: DeadLetter, Reason: ReasonInvalid}
}

// The first and the longest pause between two tries of a message on hold.
const (
	firstHold   = 20 * time.Millisecond
	longestHold = time.Second
)

// holdDelay doubles with each try. It is never longer than the Runner's
// RetryAfter, if that is set.
func holdDelay(tries int, atMost time.Duration) time.Duration {
	d := min(firstHold<<min(tries, 10), longestHold)
	if atMost > 0 {
		d = min(d, max(atMost, time.Millisecond))
	}
	return d
}

func asFailure(err error) (*semel.Failure, bool) {
	f, ok := errors.AsType[*semel.Failure](err)
	return f, ok && f != nil
}
