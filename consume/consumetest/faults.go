package consumetest

import (
	"context"
	"errors"
	"sync/atomic"
	"time"

	"github.com/semel-go/semel/consume"
	"github.com/semel-go/semel/consume/driver"
	"github.com/semel-go/semel/store"
)

var errFault = errors.New("consumetest: a fault was asked for")

// flakyStore is one process's connection to the store.
type flakyStore struct {
	store.Store
	down  atomic.Bool
	stale atomic.Bool // no lease can be renewed
}

func (s *flakyStore) fault() error {
	if s.down.Load() {
		return errFault
	}
	return nil
}

func (s *flakyStore) Claim(ctx context.Context, p store.Proposal) (store.Found, error) {
	if err := s.fault(); err != nil {
		return store.Found{}, err
	}
	return s.Store.Claim(ctx, p)
}

func (s *flakyStore) Swap(ctx context.Context, seen store.Seen, p store.Proposal) (store.Found, error) {
	if err := s.fault(); err != nil {
		return store.Found{}, err
	}
	return s.Store.Swap(ctx, seen, p)
}

func (s *flakyStore) Renew(ctx context.Context, held []store.Lease, d time.Duration) ([]error, error) {
	if err := s.fault(); err != nil {
		return nil, err
	}
	if s.stale.Load() {
		return nil, errFault
	}
	return s.Store.Renew(ctx, held, d)
}

func (s *flakyStore) Settle(ctx context.Context, l store.Lease, t store.Settlement) error {
	if err := s.fault(); err != nil {
		return err
	}
	return s.Store.Settle(ctx, l, t)
}

func (s *flakyStore) Get(ctx context.Context, k store.Key) (store.Found, error) {
	if err := s.fault(); err != nil {
		return store.Found{}, err
	}
	return s.Store.Get(ctx, k)
}

// faults are hooks into what a consumer tells the broker. An error of a before
// hook means that it was not sent; of after, that the answer was lost.
type faults struct {
	beforeAck, afterAck, beforeNak, beforeForward, beforeExtend func(m *consume.Message) error
}

type flakySource struct {
	driver.Source
	faults
}

func (s *flakySource) Next(ctx context.Context, limit int) ([]driver.Delivery, error) {
	ds, err := s.Source.Next(ctx, limit)
	for i, d := range ds {
		ds[i] = &flakyDelivery{d, s.faults}
	}
	return ds, err
}

type flakyDelivery struct {
	driver.Delivery
	faults
}

func (d *flakyDelivery) Ack(ctx context.Context) error {
	return around(d.Message(), d.beforeAck, d.afterAck, func() error { return d.Delivery.Ack(ctx) })
}

func (d *flakyDelivery) Nak(ctx context.Context, delay time.Duration) error {
	return around(d.Message(), d.beforeNak, nil, func() error { return d.Delivery.Nak(ctx, delay) })
}

func (d *flakyDelivery) Extend(ctx context.Context) error {
	return around(d.Message(), d.beforeExtend, nil, func() error { return d.Delivery.Extend(ctx) })
}

func (d *flakyDelivery) Forward(ctx context.Context, to driver.Action, headers []store.Header) error {
	return around(d.Message(), d.beforeForward, nil, func() error { return d.Delivery.Forward(ctx, to, headers) })
}

func around(m *consume.Message, before, after func(*consume.Message) error, f func() error) error {
	if before != nil {
		if err := before(m); err != nil {
			return err
		}
	}
	err := f()
	if err == nil && after != nil {
		err = after(m)
	}
	return err
}

// times is a hook that fails so often.
func times(n int) func(*consume.Message) error {
	var left atomic.Int64
	left.Store(int64(n))
	return func(*consume.Message) error {
		if left.Add(-1) >= 0 {
			return errFault
		}
		return nil
	}
}

// Waits implements driver.Waiter, if the adapter's delivery does.
func (d *flakyDelivery) Waits(waits bool) {
	if w, ok := d.Delivery.(driver.Waiter); ok {
		w.Waits(waits)
	}
}
