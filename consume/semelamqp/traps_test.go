package semelamqp_test

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"sync/atomic"
	"testing"
	"time"

	"github.com/semel-go/semel"
	"github.com/semel-go/semel/consume"
	"github.com/semel-go/semel/consume/driver"
	"github.com/semel-go/semel/consume/semelamqp"
)

// Trap: acking before completing. While the handler runs, the message is the
// broker's, so that it comes again when the process dies.
func TestAck_BeforeCompletion_IsNeverSent(t *testing.T) {
	b := open(t, semelamqp.Classic)
	j := &journal{}
	first := b.connect(t)
	begun, over := make(chan struct{}), make(chan struct{})
	stop := serve(t, j.consumer(t, func(ctx context.Context, _ *semel.Execution, _ *consume.Message) error {
		close(begun)
		<-over
		return errDead
	}, consume.Options{Drain: time.Nanosecond}), first)
	b.Publish(t, many(1)...)
	<-begun
	if n := b.Unsettled(t); n != 1 {
		t.Errorf("%d messages are with the broker while the handler runs, want 1", n)
	}
	first.Kill()
	close(over)
	_ = stop()
	serve(t, j.consumer(t, j.plain, consume.Options{}), b.connect(t)) // a store of its own, that knows nothing
	settled(t, b)
	j.once(t, 1)
}

// Trap: a duplicate is never acked, and fills the prefetch for ever.
func TestServe_Duplicate_IsAcked(t *testing.T) {
	b := open(t, semelamqp.Classic)
	b.opt.Prefetch = 2
	j := &journal{}
	serve(t, j.consumer(t, j.plain, consume.Options{}), b.connect(t))
	for range 20 {
		b.Publish(t, many(1)...)
	}
	settled(t, b)
	b.Publish(t, keyed("k1"))
	settled(t, b)
	j.once(t, 2)
}

// Trap: a late ack for an older delivery. Its tag is another message's on the
// next channel.
func TestAck_OlderDelivery_AcksNoOther(t *testing.T) {
	b := open(t, semelamqp.Classic)
	c := b.connect(t)
	b.Publish(t, many(1)...)
	old := next(t, c)
	c.cut()
	<-old.Revoked()
	other := b.connect(t)
	if err := next(t, other).Ack(t.Context()); err != nil { // done by another
		t.Fatal(err)
	}
	if err := other.Close(); err != nil {
		t.Fatal(err)
	}
	b.Publish(t, keyed("k1"))
	again := next(t, c) // tag 1 of the new channel
	if key(again) != "k1" {
		t.Fatalf("it is %s", key(again))
	}
	for _, late := range []func() error{
		func() error { return old.Ack(t.Context()) },
		func() error { return old.Nak(t.Context(), 0) },
		func() error { return old.Nak(t.Context(), time.Hour) },
		func() error { return old.Forward(t.Context(), driver.DeadLetter, nil) },
	} {
		if err := late(); !errors.Is(err, driver.ErrGone) {
			t.Errorf("it says %v, want ErrGone", err)
		}
	}
	select {
	case <-again.Revoked():
		t.Error("the new channel was closed")
	default:
	}
	if n := b.Unsettled(t); n != 1 {
		t.Errorf("%d messages are unsettled, want 1", n)
	}
	if n := len(b.Copies(t, driver.DeadLetter)); n != 0 {
		t.Errorf("%d dead letters", n)
	}
	if err := again.Ack(t.Context()); err != nil {
		t.Error(err)
	}
	settled(t, b)
}

// Trap: a second ack of one delivery closes the channel, and with it all that
// is in work.
func TestAck_Repeated_IsSentOnce(t *testing.T) {
	b := open(t, semelamqp.Classic)
	c := b.connect(t)
	b.Publish(t, many(3)...)
	one, two := next(t, c), next(t, c)
	for range 3 {
		if err := one.Ack(t.Context()); err != nil {
			t.Error(err)
		}
		if err := one.Nak(t.Context(), 0); err != nil {
			t.Error(err)
		}
	}
	if err := two.Nak(t.Context(), 0); err != nil {
		t.Error(err)
	}
	if err := two.Ack(t.Context()); !errors.Is(err, driver.ErrGone) {
		t.Errorf("an ack of what was given back: %v", err)
	}
	next(t, c)
	until(t, "two messages left", func() bool { return b.Unsettled(t) == 2 })
	select {
	case <-one.Revoked():
		t.Error("the channel was closed")
	default:
	}
}

// Trap: a queue that was deleted and made again. The Source makes it again, takes
// its messages, and acks none of them for one of the old.
func TestServe_QueueRecreated_RunsItsMessages(t *testing.T) {
	for _, kind := range []semelamqp.Kind{semelamqp.Classic, semelamqp.Quorum} {
		t.Run(string(kind), func(t *testing.T) {
			t.Parallel()
			b := open(t, kind)
			c := b.connect(t)
			b.Publish(t, many(1)...)
			old := next(t, c)
			if _, err := b.ch.QueueDelete(b.name, false, false, false); err != nil {
				t.Fatal(err)
			}
			<-old.Revoked()
			until(t, "the queue made anew", func() bool {
				_, err := c.Info(t.Context())
				return err == nil
			})
			b.Publish(t, keyed("k1"))
			again := next(t, c)
			if err := old.Ack(t.Context()); !errors.Is(err, driver.ErrGone) {
				t.Errorf("the old one: %v", err)
			}
			if n := b.Unsettled(t); n != 1 || key(again) != "k1" {
				t.Errorf("%d messages, and %s, want 1, and k1", n, key(again))
			}
			if err := again.Ack(t.Context()); err != nil {
				t.Error(err)
			}
			settled(t, b)
		})
	}
}

// Trap: a message is dropped because its first handler failed. Here each of
// them does, and the wait is the broker's.
func TestServe_FirstHandlerFails_RunsAgain(t *testing.T) {
	for _, kind := range []semelamqp.Kind{semelamqp.Classic, semelamqp.Quorum} {
		t.Run(string(kind), func(t *testing.T) {
			t.Parallel()
			b := open(t, kind)
			j := &journal{}
			var tries, deliveries atomic.Int64
			serve(t, j.consumer(t, func(ctx context.Context, x *semel.Execution, m *consume.Message) error {
				if tries.Add(1); x.Attempt() <= 2 {
					return errDead
				}
				deliveries.Add(int64(m.Deliveries))
				if r, _ := m.Header(semelamqp.RoutingKey); r != b.name || m.Origin.Topic != b.name {
					t.Errorf("it comes from %q by %q", m.Origin.Topic, r)
				}
				return j.plain(ctx, x, m)
			}, consume.Options{Backoff: func(int) time.Duration { return 250 * time.Millisecond }}), b.connect(t))
			b.Publish(t, many(5)...)
			settled(t, b)
			j.once(t, 5)
			if tries.Load() != 15 || deliveries.Load() != 15 {
				t.Errorf("%d tries, and the last of each was delivery %d in all; want 15 and 15: %v", tries.Load(), deliveries.Load(), j.errors())
			}
		})
	}
}

// Trap: in one queue with many pauses, the long ones hold up the short ones.
func TestRetry_LongBeforeShort_DoesNotDelayIt(t *testing.T) {
	b := open(t, semelamqp.Quorum)
	c := b.connect(t)
	b.Publish(t, many(2)...)
	for _, delay := range []time.Duration{24 * time.Hour, 250 * time.Millisecond} {
		if err := next(t, c).Nak(t.Context(), delay); err != nil {
			t.Fatal(err)
		}
	}
	d := next(t, c)
	if key(d) != "k1" || d.Message().Deliveries != 2 {
		t.Errorf("%s came, delivery %d; want k1, delivery 2", key(d), d.Message().Deliveries)
	}
	if err := d.Ack(t.Context()); err != nil {
		t.Error(err)
	}
	until(t, "the long one waits", func() bool { return b.Unsettled(t) == 1 })
}

// Connections are cut while acks, copies and retries are on their way.
func TestServe_ConnectionsCut_LosesNoMessage(t *testing.T) {
	for _, kind := range []semelamqp.Kind{semelamqp.Classic, semelamqp.Quorum} {
		t.Run(string(kind), func(t *testing.T) {
			t.Parallel()
			b := open(t, kind)
			j := &journal{}
			c := b.connect(t)
			serve(t, j.consumer(t, func(ctx context.Context, x *semel.Execution, m *consume.Message) error {
				switch n := rand.N(10); {
				case n == 0 && x.Attempt() == 1:
					return errDead // goes back by a copy
				case m.Key == "bad":
					return semel.Final(errDead)
				}
				return j.plain(ctx, x, m)
			}, consume.Options{MaxAttempts: -1, Backoff: func(int) time.Duration { return 200 * time.Millisecond }}), c)
			const n, cuts = 300, 6
			ms := many(n)
			for i := range cuts {
				at := j.total()
				b.Publish(t, ms[i*n/cuts:(i+1)*n/cuts]...)
				b.Publish(t, keyed("bad"))
				until(t, "some run", func() bool { return j.total() > at+n/cuts/4 })
				c.cut()
			}
			settled(t, b)
			j.once(t, n)
			ids := map[string]bool{}
			for _, m := range b.Copies(t, driver.DeadLetter) {
				id, _ := m.Header(driver.LetterID)
				ids[id] = true
			}
			if len(ids) != 1 {
				t.Errorf("the dead letters are of %d messages, want 1", len(ids))
			}
			t.Logf("%d lost channels were noticed by those who settled", j.saw(consume.EventSettleFailed, errIs(driver.ErrGone)))
		})
	}
}

// A queue's consumer is cancelled, its channel is closed by an error, its
// connection by an operator: taking goes on.
func TestServe_BrokerClosesChannelsAndConnections_GoesOn(t *testing.T) {
	b := open(t, semelamqp.Classic)
	j := &journal{}
	serve(t, j.consumer(t, j.plain, consume.Options{}), b.connect(t))
	for i := range 3 {
		b.Publish(t, keyed(fmt.Sprint("k", i)))
		until(t, "it ran", func() bool { return j.total() == i+1 })
		before := j.saw(consume.EventReceiveFailed, nil)
		expr := fmt.Sprintf(`[exit(Pid, kill) || Pid <- rabbit_channel:list(), rabbit_amqqueue:consumers_all(<<"/">>) =/= [], lists:any(fun(C) -> proplists:get_value(channel_pid, C) =:= Pid andalso element(4, proplists:get_value(queue_name, C)) =:= <<"%s">> end, rabbit_amqqueue:consumers_all(<<"/">>))]`, b.name)
		if _, err := b.server.Eval(expr); err != nil {
			t.Fatal(err)
		}
		until(t, "the loss noticed", func() bool { return j.saw(consume.EventReceiveFailed, nil) > before })
	}
	b.Publish(t, keyed("k3"))
	settled(t, b)
	j.once(t, 4)
}
