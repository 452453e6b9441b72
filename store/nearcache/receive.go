package nearcache

import (
	"context"
	"errors"
	"fmt"

	"github.com/semel-go/semel/store"
)

// Receive implements store.Receiver if the cached store does, and otherwise returns an
// error that wraps errors.ErrUnsupported. It removes the key from the cache of this process
// and from the front; caches of other processes may answer with an earlier version for up
// to Options.MaxAge.
func (s *Store) Receive(ctx context.Context, r store.Record, steps []store.Step) (store.Found, error) {
	inner, ok := store.As[store.Receiver](s.st)
	if !ok {
		return store.Found{}, fmt.Errorf("nearcache: the cached store cannot receive records: it does not implement store.Receiver: %w", errors.ErrUnsupported)
	}
	in, hash := s.shardOf(r.Key)
	defer in.invalidate(hash)
	f, err := inner.Receive(ctx, r, steps)
	if err != nil || f.Won {
		s.markSwapped(ctx, &store.Seen{Key: r.Key, Fence: r.Fence})
	}
	return f, err
}
