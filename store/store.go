package store

import (
	"context"
	"errors"
	"time"
)

// Store keeps records. Safe for concurrent use.
//
// It compares and moves, and nothing else: it does not classify, retry, log or
// wait. It never repeats by itself what may have been applied, and returns its
// driver's errors as they are, wrapped with %w at most. An error means "not
// known whether it was applied", unless it is one of this package's.
//
// Changes are durable, and seen by every later read, when the method returns
// nil; a store that promises less says so in its documentation.
type Store interface {
	// Claim inserts a record if there is none for p.Key, in one atomic step,
	// else returns the one that is there, expired or not, unchanged. Won is
	// true if the record is p's: inserted now, or by an earlier sending of
	// the same p (same Owner, and still in p.State).
	Claim(ctx context.Context, p Proposal) (Found, error)

	// Swap replaces the record if it still is what was seen, in one atomic
	// step, else returns what is there now. It compares all of Seen and no
	// clock: the caller has judged. Won is true if the record is p's, by
	// this or an earlier sending, as in Claim. [ErrNotFound]: there is none.
	Swap(ctx context.Context, seen Seen, p Proposal) (Found, error)

	// Renew moves Until of each lease to d from now, where owner and fence
	// match and the state is Processing; it never creates. The first result
	// has one entry a lease, nil, ErrLeaseLost or what went wrong with that
	// one; the second tells what went wrong with all.
	Renew(ctx context.Context, held []Lease, d time.Duration) ([]error, error)

	// Settle ends a claim if owner and fence match and the state is
	// Processing, else it is [ErrLeaseLost]. The same settlement again is
	// nil. It never creates and never deletes.
	Settle(ctx context.Context, l Lease, s Settlement) error

	// Get reads one record, strongly consistent and expired or not.
	// [ErrNotFound], and no other error, means that there is none.
	Get(ctx context.Context, k Key) (Found, error)

	// Sweep looks at a part of the store, from the cursor on. It deletes
	// expired records, re-checking that they still are, and hands back the
	// lapsed ones for the caller to judge; no more than limit, which is at
	// least 1, of both together. It never touches a live claim or an Unknown record.
	Sweep(ctx context.Context, from Cursor, limit int) (SweepResult, error)
}

// Found is a record as it was at Now.
type Found struct {
	Record Record
	Won    bool
	// Now is the store's clock, read in the same step as the record: the
	// only time to compare the record's with.
	Now time.Time
}

// Cursor is where a sweep goes on; the store's own text. Empty: the start.
type Cursor string

// SweepResult is what one step of a sweep did.
type SweepResult struct {
	Deleted int
	Lapsed  []Record  // Started and Processing records whose Until has passed
	Now     time.Time // the store's clock, to judge them by
	Next    Cursor    // empty: the pass is over
}

var (
	// ErrNotFound is the only sign that a record is absent.
	ErrNotFound = errors.New("store: no such record")
	// ErrLeaseLost is a change by somebody who no longer holds the claim.
	ErrLeaseLost = errors.New("store: lease lost")
	// ErrTooLarge is an outcome that the store cannot keep. Nothing was
	// changed; a tombstone will fit.
	ErrTooLarge = errors.New("store: outcome too large")
	// ErrCorrupt is a record that cannot be read: an unknown format or state.
	// It never counts as absent.
	ErrCorrupt = errors.New("store: unreadable record")
	// ErrChanged is a change that was meant for another version of the record.
	ErrChanged = errors.New("store: record has changed")
)
