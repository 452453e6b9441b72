package redisstore

import (
	"context"
	"errors"
	"fmt"

	"github.com/redis/go-redis/v9"

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

// Confirm implements store.Confirmer. With Options.Replicas or Options.Fsync, each master makes
// a write and waits for its acknowledgements, which cover all earlier changes. Without these
// options a change is as safe as it gets when it is visible, and nothing is sent.
func (s *Store) Confirm(ctx context.Context) error {
	if s.closed.Load() {
		return ErrClosed
	}
	if !s.opt.waitsForAcks() {
		return nil
	}
	if s.cluster == nil {
		return s.explain("confirm", s.confirmNode(ctx, s.client, s.opt.Prefix+barrierName))
	}
	parts, err := s.partition(ctx)
	if err != nil {
		return s.explain("confirm", err)
	}
	for _, p := range parts {
		if err := s.confirmNode(ctx, p.client, string(s.appendBucket(nil, p.buckets[0]))+barrierName); err != nil {
			return s.explain("confirm", p.explain(err))
		}
	}
	return nil
}

// confirmNode writes a Redis key that ends by itself, and waits for its acknowledgements.
func (s *Store) confirmNode(ctx context.Context, to sender, name string) error {
	pipe := to.Pipeline()
	write := redis.NewStatusCmd(ctx, "set", name, "", "px", 60_000)
	_ = pipe.Process(ctx, write) // it only queues
	acks := s.pipeWait(ctx, pipe)
	_, _ = pipe.Exec(ctx) // each command has its error
	if err := write.Err(); err != nil {
		return err
	}
	if err := acks(); err != nil {
		return fmt.Errorf("%w: %w", ErrUnconfirmed, err)
	}
	return nil
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
