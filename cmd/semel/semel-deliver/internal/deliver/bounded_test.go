package deliver

import (
	"context"
	"testing"
	"testing/synctest"
	"time"

	"github.com/semel-go/semel/consume/driver"
)

// endless is a source that has as many messages as are asked for.
type endless struct {
	driver.Source
	deliveryLimit int
}

func (e endless) Info(context.Context) (driver.Info, error) {
	return driver.Info{DeliveryLimit: e.deliveryLimit}, nil
}

func (endless) Next(_ context.Context, limit int) ([]driver.Delivery, error) {
	ds := make([]driver.Delivery, limit)
	for i := range ds {
		ds[i] = plainDelivery{}
	}
	return ds, nil
}

type plainDelivery struct{ driver.Delivery }

func (plainDelivery) Message() *driver.Message                 { return &driver.Message{} }
func (plainDelivery) Nak(context.Context, time.Duration) error { return nil }

// A message that is given back at a stop, and was never sent, has come one time more.
func TestBounded_BrokerCountsDeliveries_TakesNoMoreThanAreSent(t *testing.T) {
	for deliveryLimit, want := range map[int]int{0: 8, 3: 4} {
		synctest.Test(t, func(t *testing.T) {
			b := newBounded(endless{deliveryLimit: deliveryLimit}, &Options{MaxBytes: 1 << 20, Concurrency: 4}, func(driver.Info) error { return nil })
			if _, err := b.Info(t.Context()); err != nil {
				t.Fatal(err)
			}
			next := func() []driver.Delivery {
				t.Helper()
				ds, err := b.Next(t.Context(), 8)
				if err != nil {
					t.Fatal(err)
				}
				return ds
			}
			first := next()
			if len(first) != want {
				t.Errorf("with the delivery limit %d it takes %d messages, want %d", deliveryLimit, len(first), want)
			}
			if deliveryLimit == 0 {
				return
			}
			if ds := next(); len(ds) != 0 {
				t.Errorf("all places are taken, and it takes %d messages more", len(ds))
			}
			if err := first[0].Nak(t.Context(), 0); err != nil {
				t.Fatal(err)
			}
			if ds := next(); len(ds) != 1 {
				t.Errorf("one place is free, and it takes %d messages", len(ds))
			}
			waiter, ok := first[1].(driver.Waiter)
			if !ok {
				t.Fatal("its deliveries do not hear that they wait")
			}
			waiter.Waits(true) // for another message of its order key
			if ds := next(); len(ds) != 1 {
				t.Errorf("one message waits for another, and it takes %d messages", len(ds))
			}
			if err := first[1].Nak(t.Context(), 0); err != nil {
				t.Fatal(err)
			}
			waiter.Waits(false) // may come late
			if ds := next(); len(ds) != 0 {
				t.Errorf("all places are taken again, and it takes %d messages more", len(ds))
			}
		})
	}
}
