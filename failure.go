package semel

import (
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strings"
	"unicode/utf8"

	"github.com/semel-go/semel/store"
)

// Failure is a final answer: kept, and returned to each duplicate. A handler
// returns one, wrapped or not. The first caller gets no more than these fields
// either, so that code that works the first time works on a replay. Of one that
// is larger than Options.MaxOutcome duplicates get the Code, and the first 500
// bytes of the Message.
type Failure struct {
	Code    string `json:"code,omitempty"` // for programs
	Message string `json:"message"`        // for people
	Data    []byte `json:"data,omitempty"` // anything else that callers need
}

// Error is the message, else the code.
func (f *Failure) Error() string {
	if f == nil {
		return "a nil *semel.Failure" // a handler's mistake must not panic after its effect
	}
	if f.Message == "" {
		return f.Code
	}
	return f.Message
}

// Is matches a Failure with the same code, if that is not empty: so a variable
// can be compared with, for the first answer and each replay.
func (f *Failure) Is(target error) bool {
	t, ok := target.(*Failure)
	return ok && (t == f || f != nil && t != nil && f.Code != "" && t.Code == f.Code)
}

// Final marks err as an answer that is kept and replayed: err itself if it is,
// or wraps, a *Failure, else a Failure with err's message. Final(nil) is nil.
func Final(err error) error {
	if err == nil {
		return nil
	}
	if _, ok := errors.AsType[*Failure](err); ok {
		return err
	}
	return &Failure{Message: err.Error()}
}

// NoEffect says that err came before anything was changed: the call runs
// again under every policy, and the attempt does not count. NoEffect(nil) is
// nil.
func NoEffect(err error) error {
	if err == nil {
		return nil
	}
	return &noEffect{err}
}

type noEffect struct{ error }

func (e *noEffect) Unwrap() error { return e.error }

// passedOn is the error of a finished run: that it had no effect says nothing
// of the handler that passes it on.
type passedOn struct{ error }

func (e *passedOn) Unwrap() error { return e.error }

// passOn is err for the caller of a finished run.
func passOn(err error) error {
	if SaysNoEffect(err) {
		return &passedOn{err}
	}
	return err
}

// SaysNoEffect reports whether a handler's error says of all its work what
// NoEffect says: a joined error says it only if each of its errors does. For
// people who write doors.
func SaysNoEffect(err error) bool {
	switch e := err.(type) { //nolint:errorlint // it unwraps by itself, for a join counts only if all say so
	case *noEffect:
		return true
	case *passedOn:
		return false
	case interface{ Unwrap() error }:
		return SaysNoEffect(e.Unwrap())
	case interface{ Unwrap() []error }:
		errs := e.Unwrap()
		return len(errs) > 0 && !slices.ContainsFunc(errs, func(err error) bool { return !SaysNoEffect(err) })
	}
	return false
}

// failureCodec names the layout of a kept failure's body.
const failureCodec = "semel/failure"

// CodeAttemptsExhausted is the code of the Failure that a key ends with when
// Options.MaxAttempts attempts have failed.
const CodeAttemptsExhausted = "attempts_exhausted"

// clean is f as it will be read back: the first caller gets what others will.
func (f *Failure) clean() *Failure {
	if utf8.ValidString(f.Code) && utf8.ValidString(f.Message) {
		return f
	}
	return &Failure{Code: strings.ToValidUTF8(f.Code, "\ufffd"), Message: strings.ToValidUTF8(f.Message, "\ufffd"), Data: f.Data}
}

func (f *Failure) outcome() (store.Outcome, error) {
	body, err := json.Marshal(f)
	return store.Outcome{Body: body, Codec: failureCodec}, err
}

func failureOf(o store.Outcome) error {
	if o.Gone {
		return &Failure{Code: "failure_not_kept", Message: "the failure was too large to keep"}
	}
	var f Failure
	if o.Codec != failureCodec {
		return fmt.Errorf("kept failure has codec %q, not %q: %w", o.Codec, failureCodec, store.ErrCorrupt)
	}
	if err := json.Unmarshal(o.Body, &f); err != nil {
		return fmt.Errorf("kept failure: %w: %w", err, store.ErrCorrupt)
	}
	return &f
}
