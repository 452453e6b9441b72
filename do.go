package semel

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"

	"github.com/semel-go/semel/store"
)

// Runner runs a handler once for a call. A *Guard is a Runner, and so is a store's
// Atomic. After Run has returned, it starts no handler. Safe for concurrent use.
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
			if err := c.Unmarshal(r.Body, v); err != nil {
				return fmt.Errorf("semel: codec %q: %w", r.Codec, err)
			}
			return nil
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
// done. If the result cannot be encoded, fn has had its effect and never runs
// again; duplicates get ErrNotKept.
func Do[T any](ctx context.Context, r Runner, call Call, fn func(ctx context.Context, x *Execution) (T, error)) (T, error) {
	var got struct {
		value     T
		unencoded error
		done      bool // fn succeeded, so an error is Semel's and not fn's
	}
	res, err := r.Run(ctx, call, func(ctx context.Context, x *Execution) (store.Outcome, error) {
		v, err := fn(ctx, x)
		if err != nil {
			return store.Outcome{}, err
		}
		got.done = true
		o, err := x.encode(v)
		if err != nil {
			got.unencoded = err
			return store.Outcome{Gone: true}, nil //nolint:nilerr // the effect has happened: it must be kept; the caller gets the error
		}
		return o, nil
	})
	if err != nil && !(got.done && errors.Is(err, ErrOutcomeNotStored)) {
		return got.value, err
	}
	if got.unencoded != nil {
		return got.value, errors.Join(got.unencoded, err)
	}
	if derr := res.Decode(&got.value); derr != nil {
		return got.value, errors.Join(derr, err)
	}
	return got.value, err
}

// Once is Do for work without a result.
func Once(ctx context.Context, r Runner, call Call, fn func(ctx context.Context, x *Execution) error) error {
	_, err := r.Run(ctx, call, func(ctx context.Context, x *Execution) (store.Outcome, error) {
		return store.Outcome{}, fn(ctx, x)
	})
	return err
}
