package semel

import (
	"errors"
	"fmt"
	"time"
)

// The reasons why a call gets no outcome. There is one for each branch that a
// caller can take. Find them with errors.Is; [Error] carries more.
var (
	// ErrInvalid: the call or an option is wrong. Correct it.
	ErrInvalid = errors.New("semel: invalid call")
	// ErrInProgress: the first call is still running, or its next attempt is
	// not due. Call again after RetryAfter.
	ErrInProgress = errors.New("semel: in progress")
	// ErrReleased: the attempt that this call waited for failed, and nothing
	// was kept. The same call may be made again.
	ErrReleased = errors.New("semel: the attempt that was waited for failed")
	// ErrMismatch: the key was used before with another payload.
	ErrMismatch = errors.New("semel: key already used with another payload")
	// ErrUnverifiable: the payload cannot be compared with the first call's,
	// because its secret is no longer in Options.Secrets or it was hashed in
	// another way. The handler did not run.
	ErrUnverifiable = errors.New("semel: payload cannot be compared")
	// ErrParked: it is not known whether the effect happened. The call does not
	// run again until a reconciler or an operator decides.
	ErrParked = errors.New("semel: outcome unknown")
	// ErrNotKept: the work is done, but its result was too large to keep, or was
	// streamed.
	ErrNotKept = errors.New("semel: done, result not kept")
	// ErrExpired: the reservation of the token has ended.
	ErrExpired = errors.New("semel: reservation expired")
	// ErrUnavailable: the store did not answer. The handler did not run. In a
	// transaction the handler may have run, but its writes are rolled back,
	// except if the error is also ErrInDoubt.
	ErrUnavailable = errors.New("semel: store unavailable")
	// ErrCanceled: the caller's context ended before the handler ran; in a
	// transaction, before it committed. The cause of the context is in the error.
	ErrCanceled = errors.New("semel: canceled")
	// ErrInDoubt is in the Cause of an ErrUnavailable or ErrCanceled if the answer
	// to the COMMIT of a transaction was lost, so the handler's writes may have
	// been committed. Make the same call again, with the same key, to find out.
	ErrInDoubt = errors.New("semel: the transaction may have been committed")
	// ErrOutcomeNotStored: the handler ran and its result is returned, but the
	// result could not be stored. After the lease has expired, a duplicate runs
	// the handler again or, under Park, fails with ErrParked. A *Failure found in
	// the error was not stored either.
	ErrOutcomeNotStored = errors.New("semel: outcome not stored")
	// ErrLeaseLost: the handler ran longer than its lease could be renewed, and
	// another process may have taken over. Its result does not count; the same
	// call returns the recorded one. It is also the cause of the handler's
	// context then.
	ErrLeaseLost = errors.New("semel: lease lost")
)

// Error says why a call got no outcome. It unwraps to Reason and Cause. Semel
// puts no key and no payload into its text, but the text of Cause may have some.
type Error struct {
	// Reason is one of this package's errors, or store.ErrCorrupt if the record
	// is unreadable, or store.ErrChanged if another process changed it first.
	Reason    error
	Operation string
	// RetryAfter is how long the obstacle lasts at most, such as the rest of the
	// lease of a run. A run in progress may renew its lease. Zero: not known.
	RetryAfter time.Duration
	// Cause is the error of the store or of the handler, or nil.
	Cause error
}

// Error returns the reason, the operation and the cause in one line.
func (e *Error) Error() string {
	s := e.Reason.Error()
	if e.Operation != "" {
		s = fmt.Sprintf("%s (operation %q)", s, e.Operation)
	}
	if e.Cause != nil {
		s += ": " + e.Cause.Error()
	}
	return s
}

// Unwrap returns Reason and, if there is one, Cause.
func (e *Error) Unwrap() []error {
	if e.Cause == nil {
		return []error{e.Reason}
	}
	return []error{e.Reason, e.Cause}
}

// textOnly keeps the text of err and nothing else. The result of a run that lost
// its lease does not count, so errors.As must not find it.
func textOnly(err error) error {
	if err == nil {
		return nil
	}
	return errors.New(err.Error())
}

// withoutOutcome makes a reconciler's error the cause of another error. The result
// must not say that the call is done, or that its failure is kept.
func withoutOutcome(err error) error {
	if _, ok := errors.AsType[*Failure](err); ok {
		return textOnly(err)
	}
	for _, outcome := range []error{ErrNotKept, ErrOutcomeNotStored, ErrLeaseLost} {
		if errors.Is(err, outcome) {
			return textOnly(err)
		}
	}
	return err
}

func invalid(operation string, cause error) error {
	return &Error{Reason: ErrInvalid, Operation: operation, Cause: cause}
}
