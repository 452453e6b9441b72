package natstest

import (
	"fmt"
	"sync/atomic"
	"testing"
	"time"

	"github.com/nats-io/nats.go/jetstream"

	"github.com/semel-go/semel/consume/semelnats"
)

// With a MaxAckPending of 1 each pull reaches the limit. The next handler begins after the
// ack of the one before, and not after a pause.
func TestServe_MaxAckPendingOne_HandlersBeginAtOnce(t *testing.T) {
	t.Parallel()
	b := open(t, func(c *jetstream.ConsumerConfig) { c.MaxAckPending = 1 })
	for n := range 10 {
		b.Publish(t, keyed(fmt.Sprint(n)))
	}
	began := time.Now()
	serve(t, consumer(t, nop, nil), b.Connect(t))
	until(t, "all settled", func() bool { return b.Unsettled(t) == 0 })
	if took := time.Since(began); took > 5*time.Second {
		t.Errorf("10 messages took %v", took)
	}
}

// asked is a consumer that notes how many messages its first pull asks for.
type asked struct {
	jetstream.Consumer
	first int
}

func (a *asked) Fetch(n int, o ...jetstream.FetchOpt) (jetstream.MessageBatch, error) {
	if a.first == 0 {
		a.first = n
	}
	return a.Consumer.Fetch(n, o...)
}

// The server never fills a pull of more, so that each would stay open for a while.
func TestNext_LimitIsAboveMaxAckPending_AsksForMaxAckPending(t *testing.T) {
	t.Parallel()
	b := open(t, func(c *jetstream.ConsumerConfig) { c.MaxAckPending = 3 })
	a := &asked{Consumer: b.consumer}
	s, err := semelnats.New(b.js, a, &b.opt)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := s.Next(t.Context(), 256); err != nil || a.first != 3 {
		t.Errorf("it asked for %d messages, %v; want 3", a.first, err)
	}
}

// Another member has a part of MaxAckPending. A pull that asks for more than the rest returns
// the rest at once, and does not hold it back while acks make room for more. The first pull
// of a Serve, which has no limit of time, does the same.
func TestNext_OthersReachMaxAckPending_ReturnsTheRestAtOnce(t *testing.T) {
	t.Parallel()
	for name, isFirst := range map[string]bool{"the first pull of a Serve": true, "a later pull": false} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			const most = 20
			b := open(t, func(c *jetstream.ConsumerConfig) { c.MaxAckPending, c.AckWait = most, time.Hour })
			for n := range 2 * most {
				b.Publish(t, keyed(fmt.Sprint(n)))
			}
			other, err := b.consumer.Fetch(most - 2)
			if err != nil {
				t.Fatal(err)
			}
			var theirs []jetstream.Msg
			for m := range other.Messages() {
				theirs = append(theirs, m)
			}
			s := b.Connect(t)
			if isFirst {
				if _, err := s.Info(t.Context()); err != nil {
					t.Fatal(err)
				}
			}
			if len(theirs) != most-2 {
				t.Fatalf("the other member has %d messages, %v", len(theirs), other.Error())
			}
			var acks atomic.Int64
			go func() {
				for _, m := range theirs {
					<-time.After(250 * time.Millisecond)
					_ = m.Ack()
					acks.Add(1)
				}
			}()
			// A pull that holds them back is full after the last of the acks. On a busy machine
			// the server may come to a pull after its end, and then Next returns one message.
			for got := 0; got < 2; {
				ds, err := s.Next(t.Context(), 256)
				if err != nil || len(ds) >= most-2 || acks.Load() == most-2 {
					t.Fatalf("%d messages after %d acks, %v", len(ds), acks.Load(), err)
				}
				got += len(ds)
			}
		})
	}
}
