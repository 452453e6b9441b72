package encrypted_test

import (
	"context"
	"errors"
	"sync/atomic"
	"testing"
	"time"

	"github.com/semel-go/semel/store"
	"github.com/semel-go/semel/store/encrypted"
	"github.com/semel-go/semel/store/storetest"
)

// patient sends each request again until the store answers, as a Guard does.
type patient struct{ store.Store }

func (p patient) Unwrap() store.Store { return p.Store }

func again[T any](call func() (T, error)) (T, error) {
	for {
		if v, err := call(); !errors.Is(err, storetest.ErrInjected) {
			return v, err
		}
	}
}

func (p patient) Claim(ctx context.Context, pr store.Proposal) (store.Found, error) {
	return again(func() (store.Found, error) { return p.Store.Claim(ctx, pr) })
}

func (p patient) Swap(ctx context.Context, seen store.Seen, pr store.Proposal) (store.Found, error) {
	return again(func() (store.Found, error) { return p.Store.Swap(ctx, seen, pr) })
}

func (p patient) Renew(ctx context.Context, held []store.Lease, d time.Duration) ([]error, error) {
	return again(func() ([]error, error) { return p.Store.Renew(ctx, held, d) })
}

func (p patient) Settle(ctx context.Context, l store.Lease, s store.Settlement) error {
	_, err := again(func() (struct{}, error) { return struct{}{}, p.Store.Settle(ctx, l, s) })
	return err
}

func (p patient) Get(ctx context.Context, k store.Key) (store.Found, error) {
	return again(func() (store.Found, error) { return p.Store.Get(ctx, k) })
}

// A request that is sent again is encrypted again, and counts as the same request.
func TestConformance_BadNetwork(t *testing.T) {
	var opened atomic.Uint64
	storetest.Run(t, storetest.Harness{
		Open: func(testing.TB) store.Store {
			chance := storetest.Chance(opened.Add(1), 0.4, storetest.Before, storetest.LostReply, storetest.LostReply, storetest.Twice)
			faulty := storetest.NewFault(newClocked(), func(op storetest.Op, n int) storetest.Mode {
				if op == storetest.OpSweep { // its answer counts what it did
					return storetest.None
				}
				return chance(op, n)
			})
			return patient{(&encrypted.Cipher{Keys: newRing("new")}).Store(faulty)}
		},
		Advance:   advance,
		Histories: 100,
	})
}
