package pgstore

import (
	"context"
	"errors"
	"fmt"

	"github.com/jackc/pgx/v5/pgtype"

	"github.com/semel-go/semel/store"
	"github.com/semel-go/semel/store/pgstore/internal/pgwire"
)

// Wait implements store.Waiter under Options.Notify. Else, and while the
// connection that listens is lost, it says so at once, and its caller polls.
func (s *Store) Wait(ctx context.Context, seen store.Seen) error {
	if s.closed.Load() {
		return ErrClosed
	}
	if s.listener == nil {
		return fmt.Errorf("pgstore: wait: Options.Notify is off: %w", errors.ErrUnsupported)
	}
	w, err := s.listener.Join(idOf(seen.Key))
	if err != nil {
		return pgwire.Explain("wait", err)
	}
	defer s.listener.Leave(w)
	// Nobody was notified of what ended before the join.
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
	case <-w.Done():
		return pgwire.Explain("wait", w.Err())
	case <-ctx.Done():
		return ctx.Err()
	}
}

// ended notifies all callers that wait for a key, in this process and in others,
// that a run of the key has ended. It waits for nothing.
func (s *Store) ended(id pgtype.UUID) {
	if s.listener != nil {
		s.listener.Notify(id)
	}
}
