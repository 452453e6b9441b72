package proxy

import (
	"context"
	"time"

	"golang.org/x/sync/semaphore"

	"github.com/semel-go/semel/store"
)

// Answers over largeAnswer bytes that are being stored at the same time have at most
// largeAtOnce bytes together. The others wait here instead of in the queue of the
// store, where the claims and the small answers of all tenants would wait after them.
// An answer waits at most placeWait, and then goes to the store without a place.
const (
	largeAnswer = 64 << 10
	largeAtOnce = 1 << 20
	placeWait   = time.Second
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

// Settle implements store.Store. The wait for a place takes at most a quarter of the time
// that the store has for its answer, because an answer that is not stored in time is lost:
// the request would take effect a second time.
func (s pacedStore) Settle(ctx context.Context, l store.Lease, as store.Settlement) error {
	if n := int64(len(as.Outcome.Body)); n > largeAnswer {
		n = min(n, largeAtOnce)
		if s.acquire(ctx, n) {
			defer s.large.Release(n)
		}
		if err := ctx.Err(); err != nil {
			return err
		}
	}
	return s.Store.Settle(ctx, l, as)
}

// acquire reports whether there was a place for n bytes in time.
func (s pacedStore) acquire(ctx context.Context, n int64) bool {
	wait := placeWait
	if end, ok := ctx.Deadline(); ok {
		wait = min(wait, time.Until(end)/4)
	}
	ctx, cancel := context.WithTimeout(ctx, wait)
	defer cancel()
	return s.large.Acquire(ctx, n) == nil
}
