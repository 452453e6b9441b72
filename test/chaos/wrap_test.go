//go:build unix

package chaos

import (
	"context"
	"errors"
	"sync/atomic"

	"github.com/semel-go/semel/store"
)

// The bugs of a store that the oracle must see. withoutSemel has no store.
const (
	unfenced     = "settle compares nothing"
	checkThenSet = "claim looks, and then inserts"
	forgetful    = "an acknowledged settlement is lost"
	withoutSemel = "no Semel"
)

// wrap gives a store a bug; "" gives it none.
func wrap(how string, st store.Store) store.Store {
	switch how {
	case unfenced:
		return noFence{st}
	case checkThenSet:
		return racy{st}
	case forgetful:
		return &amnesiac{Store: st}
	}
	return st
}

// noFence writes an outcome without comparing the owner, like an unconditional
// update.
type noFence struct{ store.Store }

func (s noFence) Unwrap() store.Store { return s.Store }

func (s noFence) Settle(ctx context.Context, l store.Lease, t store.Settlement) error {
	err := s.Store.Settle(ctx, l, t)
	if !errors.Is(err, store.ErrLeaseLost) || !t.State.Terminal() {
		return err
	}
	f, err := s.Get(ctx, l.Key)
	if err != nil {
		return err
	}
	_, err = s.Swap(ctx, f.Record.Seen(), store.Proposal{
		Key: l.Key, State: t.State, Policy: f.Record.Policy, Owner: l.Owner, Attempt: t.Attempt, Keep: t.Keep, Outcome: t.Outcome,
	})
	return err
}

// racy reads whether a record exists, and then writes its own over any record,
// like a claim in two steps.
type racy struct{ store.Store }

func (s racy) Unwrap() store.Store { return s.Store }

func (s racy) Claim(ctx context.Context, p store.Proposal) (store.Found, error) {
	f, err := s.Get(ctx, p.Key)
	if !errors.Is(err, store.ErrNotFound) {
		return f, err
	}
	for {
		f, err := s.Store.Claim(ctx, p)
		if err != nil || f.Won {
			return f, err
		}
		if f, err = s.Swap(ctx, f.Record.Seen(), p); err != nil || f.Won {
			return f, err
		}
	}
}

// amnesiac acknowledges every fourth settlement without keeping it, like a
// database that loses its last commits.
type amnesiac struct {
	store.Store
	n atomic.Int64
}

func (s *amnesiac) Unwrap() store.Store { return s.Store }

func (s *amnesiac) Settle(ctx context.Context, l store.Lease, t store.Settlement) error {
	if s.n.Add(1)%4 == 0 {
		return nil
	}
	return s.Store.Settle(ctx, l, t)
}
