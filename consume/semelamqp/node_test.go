package semelamqp_test

import (
	"context"
	"sync/atomic"
	"testing"
	"time"

	"github.com/semel-go/semel"
	"github.com/semel-go/semel/consume"
	"github.com/semel-go/semel/consume/driver"
	"github.com/semel-go/semel/consume/semelamqp"
	"github.com/semel-go/semel/consume/semelamqp/amqptest"
)

// The node is killed with messages in work, in retries and in the queue, and
// started again on the same files.
func TestServe_NodeKilled_GoesOn(t *testing.T) {
	t.Parallel()
	s := amqptest.Start(t)
	type side struct {
		b     *broker
		j     *journal
		hold  chan struct{}
		begun atomic.Int64
	}
	var sides []*side
	const n, before = 60, 40
	for _, kind := range []semelamqp.Kind{semelamqp.Classic, semelamqp.Quorum} {
		d := &side{b: openOn(t, s, kind), j: &journal{}, hold: make(chan struct{})}
		sides = append(sides, d)
		serve(t, d.j.consumer(t, func(ctx context.Context, x *semel.Execution, m *consume.Message) error {
			switch i := d.begun.Add(1); {
			case i <= 5:
				return errDead // its retry is with the broker when that dies
			case i > 20:
				select {
				case <-d.hold:
				case <-ctx.Done():
				}
			}
			return d.j.plain(ctx, x, m)
		}, consume.Options{Concurrency: 8, Backoff: func(int) time.Duration { return 3 * time.Second }}), d.b.connect(t))
		d.b.Publish(t, many(before)...)
	}
	for _, d := range sides {
		until(t, "some run, and some are held", func() bool { return d.begun.Load() >= 25 })
	}
	<-time.After(5 * time.Second) // a young quorum queue does not survive: see Kill
	s.Kill()
	for _, d := range sides {
		close(d.hold)
		until(t, "the loss noticed", func() bool { return d.j.saw(consume.EventReceiveFailed, nil) > 0 })
	}
	if err := s.Start(); err != nil {
		t.Fatal(err)
	}
	for _, d := range sides {
		d.b.ch = channel(t, s.URL())
		if err := d.b.ch.Confirm(false); err != nil {
			t.Fatal(err)
		}
		d.b.Publish(t, many(n)[before:]...)
	}
	for _, d := range sides {
		settled(t, d.b)
		d.j.once(t, n)
		if got := len(d.b.Copies(t, driver.DeadLetter)); got != 0 {
			t.Errorf("%d dead letters", got)
		}
	}
}
