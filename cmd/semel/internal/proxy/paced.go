package proxy

import (
	"context"

	"golang.org/x/sync/semaphore"

	"github.com/semel-go/semel/store"
)

// Answers over largeAnswer bytes that are being stored at the same time have at most
// largeAtOnce bytes together. The others wait here instead of in the queue of the
// store, where the claims and the small answers of all tenants would wait after them.
const (
	largeAnswer = 64 << 10
	largeAtOnce = 1 << 20
)

// pacedStore lets few large answers into the store at a time.
type pacedStore struct {
	store.Store
	large *semaphore.Weighted
}

func newPacedStore(st store.Store) pacedStore {
	return pacedStore{st, semaphore.NewWeighted(largeAtOnce)}
}

// Unwrap lets store.As find the optional interfaces.
func (s pacedStore) Unwrap() store.Store { return s.Store }

// Settle implements store.Store. The wait for a place ends with ctx, like the wait for
// the store's answer.
func (s pacedStore) Settle(ctx context.Context, l store.Lease, as store.Settlement) error {
	if n := int64(len(as.Outcome.Body)); n > largeAnswer {
		n = min(n, largeAtOnce)
		if err := s.large.Acquire(ctx, n); err != nil {
			return err
		}
		defer s.large.Release(n)
	}
	return s.Store.Settle(ctx, l, as)
}
