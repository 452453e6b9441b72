package semel

import (
	"encoding/json"
	"errors"
	"fmt"
	"strings"
	"unicode/utf8"

	"github.com/semel-go/semel/internal/effect"
	"github.com/semel-go/semel/internal/lapsed"
	"github.com/semel-go/semel/store"
)

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
	if _, ok := errors.AsType[*Failure](err); ok {
		return err
	}
	return &Failure{Message: err.Error()}
}

// NoEffect says that the handler changed nothing before it failed with err. The
// call may run again under every policy, and the attempt does not count.
// NoEffect(nil) is nil.
func NoEffect(err error) error {
	if err == nil {
		return nil
	}
	return &effect.NoEffect{Err: err}
}

// CodeAttemptsExhausted is the code of the Failure with which a key ends after
// Options.MaxAttempts failed attempts.
const CodeAttemptsExhausted = lapsed.CodeExhausted

// validUTF8 is f as a replay returns it.
func (f *Failure) validUTF8() *Failure {
	if utf8.ValidString(f.Code) && utf8.ValidString(f.Message) {
		return f
	}
	return &Failure{Code: strings.ToValidUTF8(f.Code, "\ufffd"), Message: strings.ToValidUTF8(f.Message, "\ufffd"), Data: f.Data}
}

func (f *Failure) outcome() (store.Outcome, error) { return lapsed.FailureOutcome(lapsed.Failure(*f)) }

// failureOf decodes a kept failure.
func failureOf(o store.Outcome) error {
	if o.Gone {
		return &Failure{Code: "failure_not_kept", Message: "the failure was too large to keep"}
	}
	var f Failure
	if o.Codec != lapsed.FailureCodec {
		return fmt.Errorf("the kept failure has codec %q, not %q: %w", o.Codec, lapsed.FailureCodec, store.ErrCorrupt)
	}
	if err := json.Unmarshal(o.Body, &f); err != nil {
		return fmt.Errorf("the kept failure: %w: %w", err, store.ErrCorrupt)
	}
	return &f
}
