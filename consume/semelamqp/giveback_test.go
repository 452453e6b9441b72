package semelamqp_test

import (
	"context"
	"fmt"
	"strings"
	"testing"
	"time"

	amqp "github.com/rabbitmq/amqp091-go"
	"github.com/semel-go/semel"
	"github.com/semel-go/semel/consume"
	"github.com/semel-go/semel/consume/driver"
	"github.com/semel-go/semel/consume/semelamqp"
	"github.com/semel-go/semel/consume/semelamqp/amqptest"
	"github.com/semel-go/semel/store"
)

// Messages that were sent ahead go back when Serve's context ends, not when its
// last handler does.
func TestStop_HandlersDrain_OthersGetTheRest(t *testing.T) {
	b := open(t, semelamqp.Quorum)
	b.opt.Prefetch, b.opt.OrderKey = 50, nil
	j := &journal{}
	begun, over := make(chan struct{}, 50), make(chan struct{})
	slow := b.connect(t)
	b.Publish(t, many(20)...)
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	done := make(chan error, 1)
	c := j.consumer(t, func(ctx context.Context, x *semel.Execution, m *consume.Message) error {
		begun <- struct{}{}
		<-over
		return j.plain(ctx, x, m)
	}, consume.Options{Concurrency: 1, InFlight: 2, Drain: time.Hour})
	go func() { done <- c.Serve(ctx, slow) }()
	<-begun
	cancel()
	serve(t, j.consumer(t, j.plain, consume.Options{}), b.connect(t))
	until(t, "the other has run the rest", func() bool { return j.total() == 19 })
	close(over)
	if err := <-done; err != nil {
		t.Errorf("Serve: %v", err)
	}
	settled(t, b)
	j.once(t, 20)
}

// A consumer that ends lets its running handler finish before the next single
// active consumer begins with the next messages, and gives those back in order.
func TestOrder_ConsumerEnds_IsKept(t *testing.T) {
	for _, kind := range []semelamqp.Kind{semelamqp.Classic, semelamqp.Quorum} {
		t.Run(string(kind), func(t *testing.T) {
			t.Parallel()
			s := amqptest.Shared(t)
			b := &broker{server: s, name: fmt.Sprint("single", queues.Add(1)), copies: map[driver.Action][]consume.Message{}, ch: channel(t, s.URL())}
			b.opt = semelamqp.Options{Declare: semelamqp.DeclareAll, Kind: kind, SingleActive: true, OrderKey: semelamqp.ByHeader(orderHeader)}
			j := &journal{}
			begun, over := make(chan struct{}), make(chan struct{})
			first := b.connect(t)
			c := j.consumer(t, func(ctx context.Context, x *semel.Execution, m *consume.Message) error {
				close(begun)
				<-over
				return j.plain(ctx, x, m)
			}, consume.Options{Drain: time.Hour})
			if _, err := first.Info(t.Context()); err != nil { // it makes the queue
				t.Fatal(err)
			}
			if err := b.ch.Confirm(false); err != nil {
				t.Fatal(err)
			}
			ctx, cancel := context.WithCancel(t.Context())
			done := make(chan error, 1)
			const n = 20
			ms, want := ofOneKey(n)
			b.Publish(t, ms...)
			go func() { done <- c.Serve(ctx, first) }()
			<-begun
			serve(t, j.consumer(t, j.plain, consume.Options{}), b.connect(t))
			cancel()
			<-time.After(time.Second) // in which the other must not begin
			close(over)
			if err := <-done; err != nil {
				t.Error(err)
			}
			if err := first.Close(); err != nil {
				t.Error(err)
			}
			settled(t, b)
			j.once(t, n)
			if got := strings.Join(j.order, " ") + " "; got != want {
				t.Errorf("they ran in the order %s", got)
			}
		})
	}
}

// Messages that a loop gives back in any order come again in the order of the
// queue.
func TestNak_GivenBack_ComesInQueueOrder(t *testing.T) {
	for _, kind := range []semelamqp.Kind{semelamqp.Classic, semelamqp.Quorum} {
		t.Run(string(kind), func(t *testing.T) {
			t.Parallel()
			b := open(t, kind)
			c := b.connect(t)
			ms := many(3)
			for i := range ms {
				ms[i].OrderKey = "lane"
			}
			b.Publish(t, ms...)
			ds := []driver.Delivery{next(t, c), next(t, c), next(t, c)}
			for _, i := range []int{1, 2, 0} {
				if err := ds[i].Nak(t.Context(), 0); err != nil {
					t.Fatal(err)
				}
			}
			for i := range ms {
				d := next(t, c)
				if want := fmt.Sprint("k", i); key(d) != want {
					t.Errorf("%s came, want %s", key(d), want)
				}
				if err := d.Ack(t.Context()); err != nil {
					t.Error(err)
				}
			}
			settled(t, b)
		})
	}
}

// A copy is the message, and goes to one queue.
func TestCopy_CCHeader_GoesToOneQueue(t *testing.T) {
	b := open(t, semelamqp.Classic)
	other := b.name + ".other"
	if _, err := b.ch.QueueDeclare(other, false, true, false, false, nil); err != nil {
		t.Fatal(err)
	}
	p := publishing(&consume.Message{Body: []byte("b"), Headers: []store.Header{{Name: consume.KeyHeader, Value: "k0"}}})
	p.Headers["CC"] = []any{other}
	p.UserId, p.Expiration = "guest", "600000"
	if err := b.ch.PublishWithContext(t.Context(), "", b.name, true, false, p); err != nil {
		t.Fatal(err)
	}
	until(t, "the original in the other queue", func() bool { return len(drain(t, b.ch, other)) == 1 })
	c := b.connect(t)
	if err := next(t, c).Nak(t.Context(), 250*time.Millisecond); err != nil {
		t.Fatal(err)
	}
	d := next(t, c)
	if err := d.Forward(t.Context(), driver.Quarantine, d.Message().Headers); err != nil {
		t.Fatal(err)
	}
	if err := d.Ack(t.Context()); err != nil {
		t.Fatal(err)
	}
	settled(t, b)
	if n := len(drain(t, b.ch, other)); n != 0 {
		t.Errorf("%d copies went to the queue of the original's CC", n)
	}
	got := drain(t, b.ch, b.letters(driver.Quarantine))
	if len(got) != 1 || got[0].Expiration != "" || got[0].UserId != "" || got[0].DeliveryMode != amqp.Persistent || string(got[0].Body) != "b" {
		t.Errorf("quarantined: %+v", got)
	}
}
