package semel

import (
	"context"
	"errors"
	"fmt"
)

// Runner runs a handler once for a call. A *Guard is one, and so is a store's
// Atomic, or what wraps either. It calls no handler after Run has returned.
// Safe for concurrent use.
type Runner interface {
	Run(ctx context.Context, call Call, fn Handler) (Result, error)
}

// Result is what a call got. The zero Result of a failed call is empty.
type Result struct {
	Outcome
	// Replayed: the handler did not run for this call.
	Replayed bool

	codecs []Codec
}

// Decode reads the result with the codec that wrote it.
func (r Result) Decode(v any) error {
	for _, c := range r.codecs {
		if c.Name() == r.Codec {
			if err := c.Unmarshal(r.Body, v); err != nil {
				return fmt.Errorf("semel: codec %q: %w", r.Codec, err)
			}
			return nil
		}
	}
	return fmt.Errorf("semel: the result was written by codec %q, which is not in Options.Codecs", r.Codec)
}

// Do runs fn once for a call and returns its result; a duplicate gets the kept
// one. The result always goes through the codec, so that the first caller gets
// what the others will.
//
// The error is a *Failure (kept, the same for each duplicate), an *Error with
// one of this package's reasons, or what fn returned (not kept). With
// ErrOutcomeNotStored the result, or the *Failure that errors.As finds in it, is
// valid all the same, but may not be kept: so ask for that first. With
// ErrNotKept the work is done. A result that cannot be encoded leaves a
// tombstone: fn has had its effect, and never runs again.
func Do[T any](ctx context.Context, r Runner, call Call, fn func(ctx context.Context, x *Execution) (T, error)) (T, error) {
	var got struct {
		value     T
		unencoded error
		done      bool // fn succeeded: then an error is Semel's, and not fn's
	}
	res, err := r.Run(ctx, call, func(ctx context.Context, x *Execution) (Outcome, error) {
		v, err := fn(ctx, x)
		if err != nil {
			return Outcome{}, err
		}
		got.done = true
		o, err := x.Encode(v)
		if err != nil {
			got.unencoded = err
			return Outcome{Gone: true}, nil //nolint:nilerr // the effect has happened: it must be kept, and the caller gets the error
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
	_, err := r.Run(ctx, call, func(ctx context.Context, x *Execution) (Outcome, error) {
		return Outcome{}, fn(ctx, x)
	})
	return err
}
