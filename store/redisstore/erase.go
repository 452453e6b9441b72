package redisstore

import (
	"context"
	"errors"
	"fmt"

	"github.com/semel-go/semel/store"
)

// Erase implements store.Eraser in one round trip. An append-only file has the record
// until the server rewrites that (BGREWRITEAOF), and a snapshot until the next one
// (BGSAVE).
func (s *Store) Erase(ctx context.Context, seen store.Seen) error {
	if err := store.CheckErase(seen); err != nil {
		return err
	}
	return s.explain("erase", s.erase(ctx, &seen))
}

func (s *Store) erase(ctx context.Context, seen *store.Seen) error {
	if s.closed.Load() {
		return ErrClosed
	}
	if err := ctx.Err(); err != nil {
		return err
	}
	c := s.newCall(&s.scripts.erase, &seen.Key, stateChange{}, appendHolder(nil, seen.Owner, seen.Fence), seenTimes(seen))
	if err := s.do(ctx, s.changes, c); err != nil {
		return err
	}
	switch err := erased(c); {
	case errors.Is(err, store.ErrNotFound) && c.ackErr != nil:
		return fmt.Errorf("%w: %w", ErrUnconfirmed, c.ackErr)
	case err != nil:
		return err
	}
	return s.confirm(ctx, c, func(again *call) error {
		if again.val == int64(0) { // as the first sending left it
			return nil
		}
		return erased(again)
	})
}

// erased reads the answer to an erasure.
func erased(c *call) error {
	switch c.val {
	case int64(1):
		return nil
	case int64(0):
		return store.ErrNotFound
	case int64(2):
		return store.ErrChanged
	}
	return unexpected(c.val)
}
