package shardstore

import (
	"context"

	"github.com/semel-go/semel/store"
)

// Sweep implements store.Store with store.SweepParts: a shard that fails, or that takes
// half of the time that is left, does not keep the pass from the others.
func (s *Store) Sweep(ctx context.Context, from store.Cursor, limit int) (store.SweepResult, error) {
	parts := make([]store.Part, len(s.shards))
	for i := range s.shards {
		sh := &s.shards[i]
		parts[i] = store.Part{Name: sh.name, Sweep: func(ctx context.Context, from store.Cursor, limit int) (store.SweepResult, error) {
			res, err := sh.st.Sweep(ctx, from, limit)
			return res, sh.wrap(err)
		}}
	}
	return store.SweepParts(ctx, from, limit, parts)
}
