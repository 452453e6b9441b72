package moved

import (
	"context"
	"errors"
	"fmt"

	"github.com/semel-go/semel/store"
)

// New makes a store of a new one and the old one that it replaces. Before a claim, and
// before a read, it moves the record of the key from the old store to the new one, if the
// old store has one that has not expired: so a call that ran in the old store is answered,
// refused or awaited as if nothing had been moved. It costs each claim and each read a read
// of the old store, and one of the new store if the old one has a record. If the old store
// does not answer, no claim is made, and if the new one has a record, that comes with the error.
// If the old store has a record and the new one does not receive it, the record comes with the
// error. All other methods go to the new store alone; the old one is only read.
//
// New waits up to [MaxClockWait] until the clock of the new store is past the old one's,
// so that the fences of each key grow; ctx ends the wait. Of a store with several clocks
// (shards, a Redis Cluster, DynamoDB) each clock counts. It returns an error if the new
// store is no store.Receiver or if a clock cannot be read. The store is safe for
// concurrent use, and closes neither of the two.
func New(ctx context.Context, to, from store.Store) (store.Store, error) {
	m, err := newMover(to, from)
	if err != nil {
		return nil, err
	}
	if err := waitForClock(ctx, to, from); err != nil {
		return nil, err
	}
	return &movedStore{to, m}, nil
}

// movedStore is the new store, into which the records of the old one come as they are
// needed.
type movedStore struct {
	store.Store
	mover *mover
}

// Unwrap lets store.As find the optional interfaces of the new store.
func (s *movedStore) Unwrap() store.Store { return s.Store }

// Ping implements store.Pinger. Each call needs both stores.
func (s *movedStore) Ping(ctx context.Context) error {
	if err := store.Ping(ctx, s.mover.from); err != nil {
		return fmt.Errorf("moved: the old store: %w", err)
	}
	if err := store.Ping(ctx, s.Store); err != nil {
		return fmt.Errorf("moved: the new store: %w", err)
	}
	return nil
}

// Claim implements store.Store.
func (s *movedStore) Claim(ctx context.Context, p store.Proposal) (store.Found, error) {
	f, ok, err := s.receive(ctx, p.Key)
	switch {
	case err != nil:
		return f, err
	case ok:
		return p.Found(&f.Record, f.Now), nil
	}
	return s.Store.Claim(ctx, p)
}

// Get implements store.Store.
func (s *movedStore) Get(ctx context.Context, k store.Key) (store.Found, error) {
	f, ok, err := s.receive(ctx, k)
	switch {
	case err != nil:
		return f, err
	case ok:
		f.Won = false
		return f, nil
	}
	return s.Store.Get(ctx, k)
}

// maxReads bounds how often a record of the old store is read that keeps changing, which it
// does only if a process still uses that store.
const maxReads = 8

// receive moves the record of a key from the old store. If that has none that counts,
// ok is false. Otherwise the result is the record that the new store has then. With an
// error, the result is the record of one of the stores if one was found.
func (s *movedStore) receive(ctx context.Context, k store.Key) (f store.Found, ok bool, err error) {
	var old store.Found // the last that was found
	for range maxReads {
		read, err := s.mover.from.Get(ctx, k)
		if read.Record.Key == k {
			old = read
		}
		switch {
		case errors.Is(err, store.ErrNotFound):
			return f, false, nil
		case err != nil:
			if old.Record.Key != k { // the new store may have the record
				old, _ = s.Store.Get(ctx, k)
			}
			return withoutOutcome(old), false, fmt.Errorf("moved: read the old store: %w", err)
		case old.Record.Expired(old.Now):
			return f, false, nil
		}
		f, ok, err = s.mover.inNewStore(ctx, &old.Record)
		if err == nil && !ok {
			f, _, err = s.mover.move(ctx, &old.Record)
		}
		switch {
		case err == nil:
			return f, true, nil
		case !errors.Is(err, errChanged) && f.Record.Key == k: // the new store has found it
			return withoutOutcome(f), false, err
		case !errors.Is(err, errChanged):
			return withoutOutcome(old), false, err
		}
	}
	return withoutOutcome(old), false, errors.New("moved: the record keeps changing in the old store; stop the processes that still use that store")
}

// withoutOutcome is a record that comes with an error.
func withoutOutcome(f store.Found) store.Found {
	f.Won, f.Record.Outcome = false, store.Outcome{}
	return f
}
