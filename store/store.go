package store

import (
	"context"
	"errors"
	"time"
)

// Store keeps records. Safe for concurrent use.
//
// A store compares and changes records. It does not judge, retry, log or wait, and
// it never repeats by itself a change that may have been applied. It returns its
// driver's errors unchanged or wrapped with %w. An error means that the change may
// or may not have been applied, unless it is one of this package's errors.
//
// When a method returns nil, its change is durable, and every later read sees it.
// A store that promises less says so in its documentation.
type Store interface {
	// Claim inserts a record if there is none for p.Key, in one atomic step.
	// Otherwise it returns the existing record unchanged, also if that has
	// expired. Won is true if the record is p's: inserted now, or inserted when
	// the same p was sent before (same Owner, and still in p.State).
	Claim(ctx context.Context, p Proposal) (Found, error)

	// Swap replaces the record if it is still as it was seen, in one atomic
	// step. Otherwise it returns the current record. It compares all fields of
	// Seen and no clock, because the caller has judged the record. Won is true
	// as in Claim. [ErrNotFound]: there is no record.
	Swap(ctx context.Context, seen Seen, p Proposal) (Found, error)

	// Renew sets Until of each lease to the store's clock plus d, if owner and
	// fence match and the state is Processing. It never creates a record. The
	// first result has one entry for each lease: nil, ErrLeaseLost, or the error
	// of that lease. The second result is an error of them all.
	Renew(ctx context.Context, held []Lease, d time.Duration) ([]error, error)

	// Settle ends a claim if owner and fence match and the state is Processing;
	// otherwise it returns [ErrLeaseLost]. Sending the same settlement again
	// returns nil. Settle never creates and never deletes a record.
	Settle(ctx context.Context, l Lease, s Settlement) error

	// Get reads one record, also if it has expired. The read is strongly
	// consistent. [ErrNotFound], and no other error, means that there is none.
	Get(ctx context.Context, k Key) (Found, error)

	// Sweep looks at a part of the store, from the cursor on. It deletes records
	// that have expired, after checking again that they have, and returns the
	// lapsed records for the caller to judge: at most limit of both together,
	// which is at least 1. It never changes a live claim or an Unknown record.
	Sweep(ctx context.Context, from Cursor, limit int) (SweepResult, error)
}

// Found is a record as it was at the time Now. If a store finds a record and cannot read
// its outcome, it returns the record without the outcome, and the error: the record is
// there, so no call may take the error for an outage of the store.
type Found struct {
	Record Record
	Won    bool
	// Now is the store's clock, read in the same step as the record. Compare the
	// record's times only with it.
	Now time.Time
}

// Cursor says where a sweep continues, in the store's own format. Empty: the start.
type Cursor string

// SweepResult is what one step of a sweep did.
type SweepResult struct {
	Deleted int
	Lapsed  []Record  // Started and Processing records whose Until has passed
	Now     time.Time // the store's clock, to judge Lapsed by
	Next    Cursor    // empty: the pass is complete
}

var (
	// ErrNotFound is the only sign that a record is absent.
	ErrNotFound = errors.New("store: no such record")
	// ErrLeaseLost refuses a change by a process that no longer holds the claim.
	ErrLeaseLost = errors.New("store: lease lost")
	// ErrTooLarge refuses an outcome that the store cannot keep. Nothing was
	// changed. A tombstone (Outcome.Gone) fits.
	ErrTooLarge = errors.New("store: outcome too large")
	// ErrCorrupt reports a record that cannot be read: its format or state is
	// unknown. The record never counts as absent.
	ErrCorrupt = errors.New("store: unreadable record")
	// ErrChanged refuses a change of a record that has changed since it was read.
	ErrChanged = errors.New("store: record has changed")
	// ErrBusy reports that another transaction holds the record or the database, or that
	// the key is asked for too often. The store works. The other one may be a call of the
	// same key, so that this is no outage for a Guard with UnprotectedOnOutage. Ask again.
	ErrBusy = errors.New("store: busy")
	// ErrNoSchema says that the database has no tables of the store yet. Adapters
	// return it when they are opened without leave to make them. Call Migrate.
	ErrNoSchema = errors.New("store: there is no schema yet")
)
