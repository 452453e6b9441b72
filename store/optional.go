package store

import (
	"bytes"
	"context"
	"encoding/hex"
	"iter"
	"slices"
	"time"
)

// The interfaces below, Journal, Timers, Eraser, Confirmer and Scrubber are optional. semel.New
// asks a store once for Journal, Lister and Waiter, package saga for Timers, package erase for
// Eraser and Confirmer, package moved for Receiver, and the commands for the others. A store that wraps
// another has a method Unwrap() Store; see [As].

// Lister is a store that can list records, for operators and reconcilers.
type Lister interface {
	// List returns the records that f selects, in any order. If a record changes
	// meanwhile, List returns the old or the new version, or skips it. If f selects
	// only records in doubt (Filter.InDoubt), a store with many records should
	// find them without reading the others.
	List(ctx context.Context, f Filter) iter.Seq2[Found, error]
}

// Filter selects records. Zero fields select all.
type Filter struct {
	Operation string
	Tenant    string
	States    []State
	// Keys selects records by Key.Value, or by the hash that logs show (Key.Short).
	Keys []string
	// Expired selects records whose retention is over.
	Expired bool
	// Idle selects records that have not changed for at least this long.
	Idle  time.Duration
	Limit int
	// Repeats allows List to return a record that changes meanwhile a second time. Then
	// List needs the same memory for any number of records.
	Repeats bool
}

// Match reports whether f selects r at the time now. The caller applies Limit.
func (f *Filter) Match(r *Record, now time.Time) bool {
	if f.Operation != "" && f.Operation != r.Key.Operation || f.Tenant != "" && f.Tenant != r.Key.Tenant {
		return false
	}
	if f.Idle > 0 && now.Sub(r.Updated) < f.Idle {
		return false
	}
	if f.Expired && !r.Expired(now) {
		return false
	}
	if len(f.Keys) > 0 && !f.names(r.Key) {
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

// names reports whether k is among f.Keys.
func (f *Filter) names(k Key) bool {
	if slices.Contains(f.Keys, k.Value) {
		return true
	}
	hashes := f.Hashes()
	if len(hashes) == 0 {
		return false
	}
	d := k.Digest()
	return slices.ContainsFunc(hashes, func(h []byte) bool { return bytes.Equal(h, d[:len(h)]) })
}

// Hashes returns each of f.Keys that can be a hash of Key.Short, as the first four bytes of a
// Key.Digest.
func (f *Filter) Hashes() (hashes [][]byte) {
	for _, k := range f.Keys {
		if b, err := hex.DecodeString(k); err == nil && len(b) == 4 {
			hashes = append(hashes, b)
		}
	}
	return hashes
}

// InDoubt reports whether f selects only records in doubt, whose state is Unknown.
func (f *Filter) InDoubt() bool {
	for _, s := range f.States {
		if s != Unknown {
			return false
		}
	}
	return len(f.States) > 0
}

// Waiter is a store that can notify its callers when a record may have changed.
type Waiter interface {
	// Wait returns nil when the record may have changed since it was seen. It
	// may be too early now and then, or late by any time, so the caller must check,
	// and it ends when ctx ends. If the record has changed before the call, Wait
	// does not block. An error means that the store cannot notify, and the caller
	// polls instead. A store that cannot notify must return an error at once
	// (errors.ErrUnsupported), because the caller polls only every 5 s while Wait runs.
	Wait(ctx context.Context, seen Seen) error
}

// Receiver is a store that can receive records of another store, for a move from one
// store to another; see package moved.
type Receiver interface {
	// Receive stores r and its steps as they are, with their times, fence and owner, in
	// one atomic step, if there is no record for r.Key or if r is a later version of the
	// one that is there ([Record.Later]). Otherwise it changes nothing. Found is the record
	// that is there afterwards; Won is true if this call has written it. [ErrTooLarge]:
	// nothing was changed; a tombstone fits.
	Receive(ctx context.Context, r Record, steps []Step) (Found, error)
}

// Migrator is a store with a schema.
type Migrator interface {
	// Migrate brings the schema up to date. It is harmless to repeat.
	Migrate(ctx context.Context) error
}

// Checker is a store that checks the settings of its server.
type Checker interface {
	// Check returns an error that names each setting under which the store cannot
	// keep its promises.
	Check(ctx context.Context) error
}

// Tx is a store inside an open transaction, for driver.RunIn. The transaction takes
// the place of the lease. Not safe for concurrent use.
type Tx interface {
	Claim(ctx context.Context, p Proposal) (Found, error)
	Swap(ctx context.Context, seen Seen, p Proposal) (Found, error)
	Settle(ctx context.Context, l Lease, s Settlement) error
	// Nested runs fn in a savepoint. If fn fails or panics, Nested undoes the
	// writes since it began, and the transaction can go on. Nested returns fn's
	// error unchanged; any other error means that the transaction is broken.
	Nested(ctx context.Context, fn func() error) error
}

// As unwraps st until it finds a T, like errors.As.
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
