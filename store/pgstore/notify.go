package pgstore

import (
	"context"
	"errors"
	"fmt"

	"github.com/jackc/pgx/v5/pgtype"

	"github.com/semel-go/semel/store"
)

// Wait implements store.Waiter under Options.Notify. Else, and while the
// connection that listens is lost, it says so at once, and its caller polls.
func (s *Store) Wait(ctx context.Context, seen store.Seen) error {
	if s.closed.Load() {
		return ErrClosed
	}
	if s.ear == nil {
		return fmt.Errorf("pgstore: wait: Options.Notify is off: %w", errors.ErrUnsupported)
	}
	w, err := s.ear.join(idOf(seen.Key))
	if err != nil {
		return explain("wait", err)
	}
	defer s.ear.leave(w)
	// What came before the join was told to nobody.
	f, err := s.Get(ctx, seen.Key)
	switch {
	case errors.Is(err, store.ErrNotFound):
		return nil
	case err != nil:
		return err
	case f.Record.State != seen.State || f.Record.Owner != seen.Owner || f.Record.Fence != seen.Fence:
		return nil
	}
	select {
	case <-w.told:
		return explain("wait", w.err)
	case <-ctx.Done():
		return ctx.Err()
	}
}

// ended tells all who wait for a key, here and elsewhere, that it has changed
// for good, or been given back. It waits for nothing.
func (s *Store) ended(id pgtype.UUID) {
	if s.ear != nil {
		s.ear.mouth.say(id)
	}
}
