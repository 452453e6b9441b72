package semel

import (
	"errors"
	"fmt"
	"time"
)

// The reasons for which a call does not get an outcome: one for each branch
// that a caller can take. errors.Is finds them; [Error] carries more.
var (
	// ErrInvalid: the call, the scope, the key or an option is wrong. Mend it.
	ErrInvalid = errors.New("semel: invalid call")
	// ErrInProgress: the first call is still running, or its next attempt is
	// not due. Call again after RetryAfter.
	ErrInProgress = errors.New("semel: in progress")
	// ErrReleased: the attempt that this call waited for failed, and nothing
	// was kept. The same call may be made again.
	ErrReleased = errors.New("semel: the attempt waited for failed")
	// ErrMismatch: the key was used before with another payload.
	ErrMismatch = errors.New("semel: key already used with another payload")
	// ErrUnverifiable: whether the payload is the first one's cannot be told,
	// because its secret is no longer in Options.Secrets or the way of
	// hashing has changed. Nothing was run.
	ErrUnverifiable = errors.New("semel: payload cannot be compared")
	// ErrParked: nobody knows whether the effect happened. Nothing runs it
	// again until a reconciler or an operator decides.
	ErrParked = errors.New("semel: outcome unknown")
	// ErrNotKept: done, but the result was too large to keep, or streamed.
	ErrNotKept = errors.New("semel: done, result not kept")
	// ErrExpired: the reservation that the token speaks of is over.
	ErrExpired = errors.New("semel: reservation expired")
	// ErrUnavailable: the store did not answer, or with a record that makes no
	// sense, or the caller left. The handler did not run; in a transaction, it
	// may have run, but what it wrote there is rolled back, unless it is
	// ErrInDoubt, too.
	ErrUnavailable = errors.New("semel: store unavailable")
	// ErrInDoubt comes in the Cause of an ErrUnavailable: the store was lost at
	// the COMMIT of a transaction, and stayed away, so what the handler wrote may
	// be there. Make the same call again, which finds out, and no other in its
	// place. Without it nothing has happened.
	ErrInDoubt = errors.New("semel: the transaction may have been committed")
	// ErrOutcomeNotStored: the handler ran and its result is returned, but
	// could not be stored. A duplicate may not get it: once the lease has
	// lapsed it runs the handler again, or under Park gets ErrParked. A
	// *Failure that is found in it is in the same case.
	ErrOutcomeNotStored = errors.New("semel: outcome not stored")
	// ErrLeaseLost: the handler ran longer than its lease could be renewed,
	// and another may have taken over. Its result does not count; the same
	// call gets the recorded one. Also the cause with which the handler's
	// context is then cancelled.
	ErrLeaseLost = errors.New("semel: lease lost")
	// ErrChanged: the record is no longer the one that was to be resolved.
	ErrChanged = errors.New("semel: record has changed")
)

// Error says why a call got no outcome. It unwraps to Reason and Cause. Semel
// puts no key and no payload in its text; Cause adds what the handler or the
// store's driver said.
type Error struct {
	Reason    error // one of this package's
	Operation Operation
	// RetryAfter is how long what stands in the way holds, such as the lease of
	// a run, if it is not renewed; zero: not known.
	RetryAfter time.Duration
	// Cause is the store's or the handler's error, or nil.
	Cause error
}

// Error is the reason, the operation and the cause, in one line.
func (e *Error) Error() string {
	s := e.Reason.Error()
	if e.Operation != "" {
		s = fmt.Sprintf("%s (operation %q)", s, string(e.Operation))
	}
	if e.Cause != nil {
		s += ": " + e.Cause.Error()
	}
	return s
}

// Unwrap gives Reason and, if there is one, Cause.
func (e *Error) Unwrap() []error {
	if e.Cause == nil {
		return []error{e.Reason}
	}
	return []error{e.Reason, e.Cause}
}

// textOf is an error that says what err says, and is nothing else: the result
// of a run that lost its lease does not count, so errors.As must not find it.
func textOf(err error) error {
	if err == nil {
		return nil
	}
	return errors.New(err.Error())
}

// ofItsOwn is a reconciler's err as the cause of another's: never what would say
// that the call is done, or its failure kept.
func ofItsOwn(err error) error {
	if _, ok := errors.AsType[*Failure](err); ok {
		return textOf(err)
	}
	for _, done := range []error{ErrNotKept, ErrOutcomeNotStored, ErrLeaseLost} {
		if errors.Is(err, done) {
			return textOf(err)
		}
	}
	return err
}

func invalid(op Operation, cause error) error {
	return &Error{Reason: ErrInvalid, Operation: op, Cause: cause}
}
