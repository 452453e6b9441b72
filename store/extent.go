package store

import (
	"context"
	"errors"
)

// Extent says which calls an error concerns. docs/outages.md has the table.
type Extent uint8

const (
	// ExtentStore: all calls, as far as the error tells. [Ping] tells whether the
	// store answers at all.
	ExtentStore Extent = iota
	// ExtentPart: the calls whose keys are in one part of the store, such as a
	// shard, a node of a cluster or a partition of a table. Other keys are served.
	ExtentPart
	// ExtentCall: this call only. The store has answered.
	ExtentCall
)

// Affects returns which calls an error concerns. Every component that must tell a
// store's outage from the trouble of one key asks this function. If an error is
// marked several times, the smallest extent counts.
func Affects(err error) Extent {
	for _, answer := range []error{ErrNotFound, ErrLeaseLost, ErrTooLarge, ErrCorrupt, ErrChanged} {
		if errors.Is(err, answer) {
			return ExtentCall
		}
	}
	extent := ExtentStore
	for marked, ok := errors.AsType[*extentError](err); ok; marked, ok = errors.AsType[*extentError](marked.error) {
		extent = max(extent, marked.extent)
	}
	return extent
}

// WithExtent marks err, for authors of stores. The text stays the same. Nil stays
// nil.
func WithExtent(err error, e Extent) error {
	if err == nil || e == ExtentStore {
		return err
	}
	return &extentError{err, e}
}

type extentError struct {
	error
	extent Extent
}

func (e *extentError) Unwrap() error { return e.error }

// Pinger is a store that consists of parts, of which some may be down.
type Pinger interface {
	// Ping returns nil if any part of the store answers.
	Ping(ctx context.Context) error
}

// pingKey is a key that no call can have, because no operation contains a #.
var pingKey = Key{Operation: "#ping", Value: "ping"}

// Ping returns nil if the store answers, whatever the state of a single key. If
// the store is no [Pinger], it reads a record that does not exist. It changes
// nothing, and a store that refuses writes may answer it.
func Ping(ctx context.Context, st Store) error {
	if p, ok := As[Pinger](st); ok {
		return p.Ping(ctx)
	}
	if _, err := st.Get(ctx, pingKey); err != nil && Affects(err) != ExtentCall {
		return err
	}
	return nil
}

// PingParts pings parts of a store concurrently, for authors of a [Pinger]. It
// returns nil as soon as one answers, and otherwise the errors of all. It does not
// wait for parts that ignore the end of ctx.
func PingParts(ctx context.Context, parts []func(context.Context) error) error {
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	answers := make(chan error, len(parts)) // buffered, so that a late answer ends its goroutine
	for _, ping := range parts {
		go func() { answers <- ping(ctx) }()
	}
	var errs []error
	for range parts {
		select {
		case err := <-answers:
			if err == nil {
				return nil
			}
			errs = append(errs, err)
		case <-ctx.Done():
			return errors.Join(append(errs, context.Cause(ctx))...)
		}
	}
	return errors.Join(errs...)
}
