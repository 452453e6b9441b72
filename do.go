package semel

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"

	"github.com/semel-go/semel/store"
)

// Runner runs a handler once for a call. A *Guard is a Runner, and so is a store's
// Atomic. After Run has returned, it starts no handler. Safe for concurrent use. A Runner
// that wraps another, such as semelotel.Runner, has a method Unwrap() Runner.
type Runner interface {
	Run(ctx context.Context, call Call, fn Handler) (Result, error)
}

// Codec encodes and decodes results. Each outcome keeps the name of the codec that
// wrote it, and the codec of this name reads it. Safe for concurrent use.
type Codec interface {
	// Name identifies the encoding and never changes: "json", "proto".
	Name() string
	Marshal(v any) ([]byte, error)
	Unmarshal(data []byte, v any) error
}

type jsonCodec struct{}

func (jsonCodec) Name() string                       { return "json" }
func (jsonCodec) Marshal(v any) ([]byte, error)      { return json.Marshal(v) }
func (jsonCodec) Unmarshal(data []byte, v any) error { return json.Unmarshal(data, v) }

// encode makes an outcome of v. A panic of the codec or of a method of v is an error,
// because the handler has had its effect.
func encode(c Codec, v any) (o store.Outcome, err error) {
	defer recovered(c, &err)
	body, err := c.Marshal(v)
	if err != nil {
		return store.Outcome{}, fmt.Errorf("semel: codec %q: %w", c.Name(), err)
	}
	return store.Outcome{Body: body, Codec: c.Name()}, nil
}

func decode(c Codec, body []byte, v any) (err error) {
	defer recovered(c, &err)
	if err := c.Unmarshal(body, v); err != nil {
		return fmt.Errorf("semel: codec %q: %w", c.Name(), err)
	}
	return nil
}

// recovered turns a panic into an error. It is to be deferred.
func recovered(c Codec, err *error) {
	if p := recover(); p != nil {
		*err = fmt.Errorf("semel: codec %q panicked: %v", c.Name(), p)
	}
}

// Result is the outcome that a call got. The Result of a failed call is empty.
type Result struct {
	store.Outcome
	// Replayed is true if the handler did not run for this call.
	Replayed bool

	codecs []Codec
}

// Decode decodes the result into v with the codec that wrote it.
func (r Result) Decode(v any) error {
	for _, c := range r.codecs {
		if c.Name() == r.Codec {
			return decode(c, r.Body, v)
		}
	}
	return fmt.Errorf("semel: the result was written by codec %q; add it to Options.Codecs", r.Codec)
}

// Do runs fn once for a call and returns its result. A duplicate gets the kept
// result. The first result goes through the codec, too, so that the first caller
// gets what the others get.
//
// The error is a *Failure, which is kept and the same for each duplicate; an
// *Error with one of this package's reasons; or what fn returned, which is not
// kept. With ErrOutcomeNotStored the result, or the *Failure in the error, is
// valid but may not be kept, so check for it first. With ErrNotKept the work is
// done and fn never runs again: the result was too large, or it cannot be encoded or
// decoded, also because a codec panics or T has changed; the Cause says why. Both are
// only of this call: if fn returns such an error of a step or of another call, the
// caller gets its text and its other causes.
func Do[T any](ctx context.Context, r Runner, call Call, fn func(ctx context.Context, x *Execution) (T, error)) (T, error) {
	var got struct {
		value     T
		encodeErr error
		done      bool // fn succeeded, so an error is Semel's and not fn's
	}
	if err := checkHandler(&call, fn == nil); err != nil {
		return got.value, err
	}
	res, err := r.Run(ctx, call, func(ctx context.Context, x *Execution) (store.Outcome, error) {
		v, err := fn(ctx, x)
		if err != nil {
			return store.Outcome{}, err
		}
		got.done = true
		o, err := x.encode(v)
		if err != nil {
			got.encodeErr = err
			return store.Outcome{Gone: true}, nil //nolint:nilerr // the effect has happened: it must be kept; the caller gets the error
		}
		return o, nil
	})
	if err != nil && !(got.done && errors.Is(err, ErrOutcomeNotStored)) {
		return got.value, err
	}
	cause := got.encodeErr
	if cause == nil {
		cause = res.Decode(&got.value)
	}
	if cause != nil {
		return got.value, errors.Join(notKept(&call, cause), err)
	}
	return got.value, err
}

// notKept is the error of a call whose work is done and whose result cannot be had.
func notKept(call *Call, cause error) error {
	if call.step != nil {
		cause = fmt.Errorf("step %q: %w", call.step.name, cause)
	}
	return &Error{Reason: ErrNotKept, Operation: call.Operation, Cause: cause}
}

// Once is Do for work without a result.
func Once(ctx context.Context, r Runner, call Call, fn func(ctx context.Context, x *Execution) error) error {
	if err := checkHandler(&call, fn == nil); err != nil {
		return err
	}
	_, err := r.Run(ctx, call, func(ctx context.Context, x *Execution) (store.Outcome, error) {
		return store.Outcome{}, fn(ctx, x)
	})
	return err
}
