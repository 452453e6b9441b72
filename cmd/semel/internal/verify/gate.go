package verify

import (
	"context"
	"fmt"
	"sync"
	"time"

	"github.com/semel-go/semel/store"
)

// gate is a store that can be shut. A Guard releases abandoned claims in the
// background, and none of these calls may come after the removal of the records.
type gate struct {
	st    store.Store
	mu    sync.Mutex
	over  bool
	calls sync.WaitGroup
}

// errShut ends what a Guard repeats until it is answered.
var errShut = fmt.Errorf("the run is over: %w", store.ErrLeaseLost)

// shut waits for the calls that are under way, and refuses all others.
func (g *gate) shut() {
	g.mu.Lock()
	g.over = true
	g.mu.Unlock()
	g.calls.Wait()
}

func passing[T any](g *gate, call func() (T, error)) (T, error) {
	if !g.enter() {
		var none T
		return none, errShut
	}
	defer g.calls.Done()
	return call()
}

func (g *gate) enter() bool {
	g.mu.Lock()
	defer g.mu.Unlock()
	if !g.over {
		g.calls.Add(1)
	}
	return !g.over
}

// Unwrap is the store itself.
func (g *gate) Unwrap() store.Store { return g.st }

// Claim implements store.Store.
func (g *gate) Claim(ctx context.Context, p store.Proposal) (store.Found, error) {
	return passing(g, func() (store.Found, error) { return g.st.Claim(ctx, p) })
}

// Swap implements store.Store.
func (g *gate) Swap(ctx context.Context, seen store.Seen, p store.Proposal) (store.Found, error) {
	return passing(g, func() (store.Found, error) { return g.st.Swap(ctx, seen, p) })
}

// Renew implements store.Store.
func (g *gate) Renew(ctx context.Context, held []store.Lease, d time.Duration) ([]error, error) {
	return passing(g, func() ([]error, error) { return g.st.Renew(ctx, held, d) })
}

// Settle implements store.Store.
func (g *gate) Settle(ctx context.Context, l store.Lease, s store.Settlement) error {
	_, err := passing(g, func() (struct{}, error) { return struct{}{}, g.st.Settle(ctx, l, s) })
	return err
}

// Get implements store.Store.
func (g *gate) Get(ctx context.Context, k store.Key) (store.Found, error) {
	return passing(g, func() (store.Found, error) { return g.st.Get(ctx, k) })
}

// Sweep implements store.Store.
func (g *gate) Sweep(ctx context.Context, from store.Cursor, limit int) (store.SweepResult, error) {
	return passing(g, func() (store.SweepResult, error) { return g.st.Sweep(ctx, from, limit) })
}
