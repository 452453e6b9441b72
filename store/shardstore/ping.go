package shardstore

import (
	"context"

	"github.com/semel-go/semel/store"
)

var _ store.Pinger = (*Store)(nil)

// Ping implements store.Pinger. It returns nil if any shard answers.
func (s *Store) Ping(ctx context.Context) error {
	parts := make([]func(context.Context) error, len(s.shards))
	for i := range s.shards {
		sh := &s.shards[i]
		parts[i] = func(ctx context.Context) error { return sh.wrap(store.Ping(ctx, sh.st)) }
	}
	return store.PingParts(ctx, parts)
}
