package store

import (
	"context"
	"iter"
	"time"
)

// What follows is optional. Who needs it finds out once, at the start, what a
// store can do: semel.New looks for Lister and Waiter, the commands for the
// others. A wrapper of a store shows what it wraps through Unwrap() Store; see
// [As].

// Lister is a store that can be searched: for operators and reconcilers.
type Lister interface {
	// List gives the records that f selects, in no stated order. A record
	// that changes meanwhile is seen as it was, as it is, or not at all.
	List(ctx context.Context, f Filter) iter.Seq2[Found, error]
}

// Filter selects records. Zero fields select all.
type Filter struct {
	Operation string
	Tenant    string
	States    []State
	// Idle selects records that have not changed for at least so long.
	Idle  time.Duration
	Limit int
}

// Match reports whether r is selected at now. Limit is the caller's to apply.
func (f *Filter) Match(r *Record, now time.Time) bool {
	if f.Operation != "" && f.Operation != r.Key.Operation || f.Tenant != "" && f.Tenant != r.Key.Tenant {
		return false
	}
	if f.Idle > 0 && now.Sub(r.Updated) < f.Idle {
		return false
	}
	if len(f.States) == 0 {
		return true
	}
	for _, s := range f.States {
		if s == r.State {
			return true
		}
	}
	return false
}

// Waiter is a store that can tell when a record may have changed.
type Waiter interface {
	// Wait returns nil when the record may no longer be what was seen: a
	// hint, to be checked. It may return nil early, or late by any time. An
	// error means that the store cannot tell, or no longer: its caller polls
	// until it is over. A store that cannot tell must say so at once (with
	// errors.ErrUnsupported), for while it waits its caller seldom polls.
	Wait(ctx context.Context, seen Seen) error
}

// Migrator is a store with a schema.
type Migrator interface {
	// Migrate brings the schema up to date; harmless when it is.
	Migrate(ctx context.Context) error
}

// Checker is a store that knows settings under which it cannot keep its
// promises.
type Checker interface {
	// Check returns an error that names each such setting in force.
	Check(ctx context.Context) error
}

// Tx is a store inside a transaction that its caller has open: what an Atomic
// runner needs. The transaction is the lease. Not safe for concurrent use.
type Tx interface {
	Claim(ctx context.Context, p Proposal) (Found, error)
	Swap(ctx context.Context, seen Seen, p Proposal) (Found, error)
	Settle(ctx context.Context, l Lease, s Settlement) error
	// Nested runs fn. If fn fails, or panics, the transaction's writes since
	// Nested began are undone, the transaction goes on, and fn's error is
	// returned as it is; any other error means that the transaction is broken.
	Nested(ctx context.Context, fn func() error) error
}

// As finds the first of st and the stores that it wraps that is a T.
func As[T any](st Store) (T, bool) {
	for st != nil {
		if t, ok := st.(T); ok {
			return t, true
		}
		w, ok := st.(interface{ Unwrap() Store })
		if !ok {
			break
		}
		st = w.Unwrap()
	}
	var zero T
	return zero, false
}
