package shardstore

import (
	"context"

	"github.com/semel-go/semel/store"
)

// eraser erases in the shard of the key. If one shard cannot erase, the store cannot.
type eraser struct {
	*Store
	rest    store.Store
	erasers []store.Eraser
}

func (e eraser) Unwrap() store.Store { return e.rest }

// Erase implements store.Eraser.
func (e eraser) Erase(ctx context.Context, seen store.Seen) error {
	i := e.shardOf(seen.Key)
	return e.shards[i].wrap(e.erasers[i].Erase(ctx, seen))
}

// confirmer confirms the changes of each shard that is a store.Confirmer.
type confirmer struct {
	*Store
	rest       store.Store
	confirmers []store.Confirmer
}

func (c confirmer) Unwrap() store.Store { return c.rest }

// Confirm implements store.Confirmer. It asks all shards concurrently.
func (c confirmer) Confirm(ctx context.Context) error {
	return c.onEach(ctx, func(i int) error {
		if c.confirmers[i] == nil {
			return nil
		}
		return c.confirmers[i].Confirm(ctx)
	})
}

// scrubber scrubs each shard that can be scrubbed.
type scrubber struct {
	*Store
	rest      store.Store
	scrubbers []store.Scrubber
}

func (s scrubber) Unwrap() store.Store { return s.rest }

// Scrub implements store.Scrubber. It scrubs all shards concurrently.
func (s scrubber) Scrub(ctx context.Context) error {
	return s.onEach(ctx, func(i int) error {
		if s.scrubbers[i] == nil {
			return nil
		}
		return s.scrubbers[i].Scrub(ctx)
	})
}
