package semel

import (
	"encoding/json"
	"errors"
	"fmt"
	"strings"
	"time"
	"unicode/utf8"

	"github.com/semel-go/semel/internal/handlererr"
	"github.com/semel-go/semel/internal/protocol"
	"github.com/semel-go/semel/store"
	"github.com/semel-go/semel/store/encrypted"
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
	// run again until a reconciler or an operator decides. Of a saga: it is stuck,
	// and waits for an operator.
	ErrParked = errors.New("semel: outcome unknown")
	// ErrNotKept: the work is done, but its result was too large to keep, was
	// streamed, or cannot be encoded or decoded.
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
	// been committed. Make the same call again, with the same key, to find out. A
	// handler must not commit the transaction itself. If it does, the key is
	// parked, and the error is neither ErrUnavailable nor ErrCanceled. If it is one
	// of them, the key may not be parked, because the store did not answer or
	// another call has claimed the key.
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
	// Running is how long the run in progress has been going on, so that a caller
	// can ask again soon after a short time, and later after a long time. Zero: not
	// known, or there is no run.
	Running time.Duration
	// Cause is the error of the store or of the handler, or nil.
	Cause error
}

// Error returns the reason, the operation, RetryAfter and the cause in one line.
func (e *Error) Error() string {
	s := e.Reason.Error()
	if errors.Is(e.Reason, ErrParked) && protocol.IsSaga(store.Key{Operation: e.Operation}) {
		s = "semel: saga stuck" // nothing has to be in doubt
	}
	if e.Operation != "" {
		s = fmt.Sprintf("%s (operation %q)", s, e.Operation)
	}
	if e.RetryAfter > 0 {
		s = fmt.Sprintf("%s; call again after at most %v", s, roundUp(e.RetryAfter))
	}
	if e.Cause != nil {
		s += ": " + e.Cause.Error()
	}
	return s
}

// roundUp rounds to whole seconds, and times below one to milliseconds.
func roundUp(d time.Duration) time.Duration {
	unit := time.Second
	if d < unit {
		unit = time.Millisecond
	}
	return (d + unit - 1).Truncate(unit)
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

// asCause makes an error of a reconciler, or of a step of a saga, the cause of the call's
// error. The result must not say that the call is done, or that its failure is kept.
func asCause(err error) error {
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

// handlerError is the error of a handler as its call uses it. An ErrNotKept or
// ErrOutcomeNotStored in it is of a step or of another call: of this call it would say
// that its work is done.
func handlerError(err error) error {
	err = handlererr.Readable(err)
	switch {
	case !errors.Is(err, ErrNotKept) && !errors.Is(err, ErrOutcomeNotStored):
		return err
	case handlererr.IsNoEffect(err):
		return &handlererr.NoEffect{Err: &notOutcome{err}}
	}
	return &notOutcome{err}
}

// notOutcome hides the reasons of an error, and nothing else of it.
type notOutcome struct{ err error }

func (e *notOutcome) Error() string { return e.err.Error() }

func (e *notOutcome) Is(target error) bool {
	return target != ErrNotKept && target != ErrOutcomeNotStored && errors.Is(e.err, target)
}

func (e *notOutcome) As(target any) bool {
	_, reason := target.(**Error)
	return !reason && errors.As(e.err, target)
}

func invalid(operation string, cause error) error {
	return &Error{Reason: ErrInvalid, Operation: operation, Cause: cause}
}

// Failure is a final answer: the store keeps it, and every duplicate gets it. A
// handler returns one, wrapped or not. The first caller gets only these fields,
// too, so that code which works the first time works on a replay. If a Failure
// is larger than Options.MaxOutcome, duplicates get the Code and the first 500
// bytes of the Message.
type Failure struct {
	Code    string `json:"code,omitempty"` // for programs
	Message string `json:"message"`        // for people
	Data    []byte `json:"data,omitempty"` // anything else that callers need
}

// Error returns the message, or the code if there is no message.
func (f *Failure) Error() string {
	if f == nil {
		return "a nil *semel.Failure" // a handler's mistake must not panic after its effect
	}
	if f.Message == "" {
		return f.Code
	}
	return f.Message
}

// Is matches a Failure with the same code, if the code is not empty. So
// errors.Is(err, ErrCardDeclined) works for the first answer and for each replay
// if ErrCardDeclined is a *Failure.
func (f *Failure) Is(target error) bool {
	t, ok := target.(*Failure)
	return ok && (t == f || f != nil && t != nil && f.Code != "" && t.Code == f.Code)
}

// Final makes err an answer that is kept and replayed. It returns err if err is or
// wraps a *Failure, otherwise a *Failure with err's message. Final(nil) is nil.
func Final(err error) error {
	if err == nil {
		return nil
	}
	err = handlererr.Readable(err)
	if _, ok := errors.AsType[*Failure](err); ok {
		return err
	}
	return &Failure{Message: err.Error()}
}

// NoEffect says that the handler changed nothing before it failed with err. The
// call may run again under every policy, and the attempt does not count. If nothing
// has happened under the key before, its next call may have another payload.
// NoEffect(nil) is nil.
func NoEffect(err error) error {
	if err == nil {
		return nil
	}
	return &handlererr.NoEffect{Err: handlererr.Readable(err)}
}

// CodeAttemptsExhausted is the code of the Failure with which a key ends after
// Options.MaxAttempts failed attempts.
const CodeAttemptsExhausted = "attempts_exhausted"

// validUTF8 is f as a replay returns it.
func (f *Failure) validUTF8() *Failure {
	if utf8.ValidString(f.Code) && utf8.ValidString(f.Message) {
		return f
	}
	return &Failure{Code: strings.ToValidUTF8(f.Code, "\ufffd"), Message: strings.ToValidUTF8(f.Message, "\ufffd"), Data: f.Data}
}

func (f *Failure) outcome() (store.Outcome, error) {
	return protocol.FailureOutcome(protocol.Failure(*f))
}

// checkDecrypted refuses an outcome that is encrypted, for a Guard without
// Options.Encryption.
func checkDecrypted(o *store.Outcome) error {
	if o.Codec != encrypted.Codec {
		return nil
	}
	return fmt.Errorf("%w: its result is encrypted, and this process has no keys; start it with --encryption-keys (in Go set Options.Encryption), with the keys of the process that wrote it", store.ErrCorrupt)
}

// failureOf decodes a kept failure.
func failureOf(o store.Outcome) error {
	if o.Gone {
		return &Failure{Code: "failure_not_kept", Message: "the failure was too large to keep"}
	}
	var f Failure
	if o.Codec != protocol.FailureCodec {
		return fmt.Errorf("the kept failure has codec %q, not %q: %w", o.Codec, protocol.FailureCodec, store.ErrCorrupt)
	}
	if err := json.Unmarshal(o.Body, &f); err != nil {
		return fmt.Errorf("the kept failure: %w: %w", err, store.ErrCorrupt)
	}
	return &f
}

// lastError is the error of the last attempt, as its record keeps it.
func lastError(r *store.Record) error {
	if r.LastError == "" {
		return nil
	}
	return errors.New(r.LastError)
}
