//go:build unix

package chaos

import (
	"context"

	"github.com/semel-go/semel/store"
)

// points is a store that tells where a call is, and goes on when it is told
// to. It has the six methods; store.As finds what else the wrapped store can.
type points struct {
	store.Store
	reach func(p point, key string, fence uint64)
}

func (s points) Unwrap() store.Store { return s.Store }

func (s points) Claim(ctx context.Context, p store.Proposal) (store.Found, error) {
	s.reach(beforeClaim, p.Key.Value, 0)
	f, err := s.Store.Claim(ctx, p)
	if err == nil && f.Won {
		s.reach(afterClaim, p.Key.Value, f.Record.Fence)
	}
	return f, err
}

func (s points) Swap(ctx context.Context, seen store.Seen, p store.Proposal) (store.Found, error) {
	s.reach(beforeSwap, p.Key.Value, seen.Fence)
	f, err := s.Store.Swap(ctx, seen, p)
	if err == nil && f.Won {
		s.reach(afterSwap, p.Key.Value, f.Record.Fence)
	}
	return f, err
}

func (s points) Settle(ctx context.Context, l store.Lease, t store.Settlement) error {
	if !t.State.Terminal() {
		return s.Store.Settle(ctx, l, t)
	}
	s.reach(beforeSettle, l.Key.Value, l.Fence)
	err := s.Store.Settle(ctx, l, t)
	if err == nil {
		s.reach(afterSettle, l.Key.Value, l.Fence)
	}
	return err
}
