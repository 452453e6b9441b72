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
)

func bad(context.Context, *semel.Execution, *consume.Message) error { return semel.Final(errDead) }

// A broker without memory reads nothing from those who publish. Copies wait,
// their messages stay; taking and acking go on. In the end there is one copy.
func TestServe_BrokerBlocksPublishers_DelaysCopiesOnly(t *testing.T) {
	t.Parallel()
	s := amqptest.Start(t)
	alarm := func(do string) {
		t.Helper()
		if _, err := s.Eval(do); err != nil {
			t.Fatal(err)
		}
	}
	b := openOn(t, s, semelamqp.Classic)
	j := &journal{}
	gate := make(chan struct{})
	serve(t, j.consumer(t, func(ctx context.Context, x *semel.Execution, m *consume.Message) error {
		if m.Key == "k1" {
			return j.plain(ctx, x, m)
		}
		if m.Key == "k2" {
			<-gate
		}
		return bad(ctx, x, m)
	}, consume.Options{}), b.connect(t))
	b.Publish(t, keyed("k0")) // so that there is a connection to publish
	settled(t, b)
	b.Publish(t, keyed("k2"))
	alarm(`rabbit_alarm:set_alarm({{resource_limit, memory, node()}, []})`)
	defer alarm(`rabbit_alarm:clear_alarm({resource_limit, memory, node()})`)
	until(t, "all connections told", func() bool {
		all, err := s.Eval(`[S || P <- rabbit_networking:connections(), {state, S} <- rabbit_networking:connection_info(P, [state]), S =:= running]`)
		return err == nil && all == "[]"
	})
	close(gate)
	blocked := func(e consume.Event) bool {
		return e.Err != nil && strings.Contains(e.Err.Error(), "blocks publishers now")
	}
	late := func(e consume.Event) bool {
		return e.Err != nil && strings.Contains(e.Err.Error(), "not confirmed it yet")
	}
	until(t, "the copy late", func() bool {
		return j.saw(consume.EventSettleFailed, late)+j.saw(consume.EventSettleFailed, blocked) > 0
	})
	if n := b.Unsettled(t); n != 1 {
		t.Errorf("%d messages are unsettled while the copy waits, want 1", n)
	}
	alarm(`rabbit_alarm:clear_alarm({resource_limit, memory, node()})`)
	settled(t, b)
	b.Publish(t, keyed("k1"))
	settled(t, b)
	if n := len(b.Copies(t, driver.DeadLetter)); n != 2 {
		t.Errorf("%d dead letters, want 2", n)
	}
}

// The queue of letters is deleted while the consumer runs: it is made again,
// and no letter is lost, though the broker confirms what no queue takes.
func TestForward_QueueDeleted_MakesItAgain(t *testing.T) {
	b := open(t, semelamqp.Quorum)
	j := &journal{}
	serve(t, j.consumer(t, bad, consume.Options{}), b.connect(t))
	b.Publish(t, keyed("k0"))
	settled(t, b)
	if n := len(b.Copies(t, driver.DeadLetter)); n != 1 {
		t.Fatalf("%d dead letters", n)
	}
	if _, err := b.ch.QueueDelete(b.letters(driver.DeadLetter), false, false, false); err != nil {
		t.Fatal(err)
	}
	b.Publish(t, keyed("k1"))
	settled(t, b)
	if n := len(b.Copies(t, driver.DeadLetter)); n != 2 {
		t.Errorf("%d dead letters, want 2", n)
	}
}

// Where the Source makes no queues, a letter without a queue stays a message.
func TestForward_NoQueue_KeepsTheMessage(t *testing.T) {
	b := open(t, semelamqp.Classic)
	b.opt.Declare = semelamqp.DeclareNothing
	j := &journal{}
	serve(t, j.consumer(t, bad, consume.Options{}), b.connect(t))
	b.Publish(t, keyed("k0"))
	settled(t, b)
	if got := reasons(t, b, driver.DeadLetter); len(got) != 1 {
		t.Errorf("the dead letters are %v, want one", got)
	}
	if _, err := b.ch.QueueDelete(b.letters(driver.DeadLetter), false, false, false); err != nil {
		t.Fatal(err)
	}
	b.Publish(t, keyed("k1"))
	until(t, "the letter refused", func() bool {
		return j.saw(consume.EventSettleFailed, func(e consume.Event) bool {
			return e.Err != nil && strings.Contains(e.Err.Error(), "no queue takes it")
		}) >= 3
	})
	if n := b.Unsettled(t); n != 1 {
		t.Errorf("%d messages are unsettled, want 1", n)
	}
	if _, err := b.ch.QueueDeclare(b.letters(driver.DeadLetter), true, false, false, false, nil); err != nil {
		t.Fatal(err)
	}
	settled(t, b)
	if got := reasons(t, b, driver.DeadLetter); len(got) != 2 {
		t.Errorf("the dead letters are %v, want two", got)
	}
}

// A retry whose queue is missing, and may not be made, waits in the consumer.
func TestRetry_NoQueue_WaitsInTheConsumer(t *testing.T) {
	b := open(t, semelamqp.Classic)
	b.opt.Declare = semelamqp.DeclareNothing
	j := &journal{}
	serve(t, j.consumer(t, func(ctx context.Context, x *semel.Execution, m *consume.Message) error {
		if x.Attempt() == 1 {
			return errDead
		}
		return j.plain(ctx, x, m)
	}, consume.Options{Backoff: func(int) time.Duration { return 250 * time.Millisecond }}), b.connect(t))
	b.Publish(t, many(2)...)
	settled(t, b)
	j.once(t, 2)
}

// The broker's own limit of deliveries ends in the dead letters, too.
func TestDeliveryLimit_Reached_LosesNoMessage(t *testing.T) {
	server := amqptest.Shared(t)
	b := &broker{server: server, name: fmt.Sprint("limited", queues.Add(1)), copies: map[driver.Action][]consume.Message{}, ch: channel(t, server.URL())}
	b.opt = semelamqp.Options{Declare: semelamqp.DeclareAll, DeliveryLimit: 2}
	c := b.connect(t)
	if _, err := c.Info(t.Context()); err != nil {
		t.Fatal(err)
	}
	if err := b.ch.Confirm(false); err != nil {
		t.Fatal(err)
	}
	b.Publish(t, keyed("k0"))
	for want := 1; want <= 3; want++ {
		d := next(t, c)
		if got := d.Message().Deliveries; got != want {
			t.Errorf("it says that it is delivery %d, want %d", got, want)
		}
		if err := d.Nak(t.Context(), 0); err != nil {
			t.Fatal(err)
		}
	}
	var letters []amqp.Delivery
	until(t, "a dead letter", func() bool {
		letters = append(letters, drain(t, b.ch, b.letters(driver.DeadLetter))...)
		return len(letters) == 1
	})
	if r := letters[0].Headers["x-first-death-reason"]; r != "delivery_limit" {
		t.Errorf("its reason is %v", r)
	}
	settled(t, b)
}

// A quorum queue counts deliveries, and the count goes on over retries.
func TestDeliveries_Retries_AreCounted(t *testing.T) {
	b := open(t, semelamqp.Quorum)
	c := b.connect(t)
	b.Publish(t, keyed("k0"))
	for want, delay := range []time.Duration{0, 250 * time.Millisecond, 0, 250 * time.Millisecond, 0} {
		d := next(t, c)
		if got := d.Message().Deliveries; got != want+1 {
			t.Errorf("it says that it is delivery %d, want %d", got, want+1)
		}
		if err := d.Nak(t.Context(), delay); err != nil {
			t.Fatal(err)
		}
	}
}
