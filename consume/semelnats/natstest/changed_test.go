package natstest

import (
	"context"
	"errors"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/nats-io/nats.go/jetstream"
	"github.com/semel-go/semel"
	"github.com/semel-go/semel/consume"
	"github.com/semel-go/semel/consume/driver"
)

// A stream with interest retention acknowledges a copy and drops it, if no consumer is there.
func TestServe_StreamOfCopiesKeepsNothing_IsRefused(t *testing.T) {
	for _, c := range []struct {
		change func(*jetstream.StreamConfig)
		mend   string
	}{
		{func(c *jetstream.StreamConfig) { c.Retention = jetstream.InterestPolicy }, "--retention limits"},
		{func(c *jetstream.StreamConfig) { c.NoAck = true }, "--ack"},
	} {
		b := open(t, nil)
		copies, err := b.js.Stream(t.Context(), b.name+"-copies")
		if err != nil {
			t.Fatal(err)
		}
		was := copies.CachedInfo().Config
		changed := was
		c.change(&changed)
		if _, err := b.js.UpdateStream(t.Context(), changed); err != nil {
			t.Fatal(err)
		}
		ctx, cancel := context.WithTimeout(t.Context(), 10*time.Second)
		defer cancel()
		err = consumer(t, nop, nil).Serve(ctx, b.Connect(t))
		for _, want := range []string{b.opt.DeadLetters, b.opt.Quarantine, "nats stream edit " + b.name + "-copies " + c.mend} {
			if err == nil || !strings.Contains(err.Error(), want) {
				t.Errorf("Serve: %v; want an error with %q", err, want)
			}
		}
		if _, err := b.js.UpdateStream(t.Context(), was); err != nil {
			t.Fatalf("the command of the error does not help: %v", err)
		}
		if _, err := b.Connect(t).Info(t.Context()); err != nil {
			t.Errorf("after the command: %v", err)
		}
	}
}

// An operator sets MaxDeliver while Serve runs, and corrects it.
func TestServe_MaxDeliverSetMeanwhile_TakesNothingUntilItIsCleared(t *testing.T) {
	b := open(t, nil)
	var ran, refused atomic.Int64
	c := consumer(t, func(context.Context, *semel.Execution, *consume.Message) error {
		ran.Add(1)
		return nil
	}, &consume.Options{Observe: func(_ context.Context, e consume.Event) {
		if e.Kind == consume.EventReceiveFailed && strings.Contains(e.Err.Error(), "MaxDeliver: is 2") {
			refused.Add(1)
		}
	}})
	stop := serve(t, c, b.Connect(t))
	b.Publish(t, keyed("a"))
	until(t, "the first message", func() bool { return ran.Load() == 1 })
	change := func(maxDeliver, maxBatch int) {
		cfg := b.consumer.CachedInfo().Config
		cfg.MaxDeliver, cfg.MaxRequestBatch = maxDeliver, maxBatch
		if _, err := b.js.UpdateConsumer(t.Context(), b.name, cfg); err != nil {
			t.Fatal(err)
		}
	}
	change(2, 0)
	until(t, "an event that names MaxDeliver", func() bool { return refused.Load() > 0 })
	b.Publish(t, keyed("b"))
	before := refused.Load()
	until(t, "another refusal", func() bool { return refused.Load() > before+1 })
	if ran.Load() != 1 {
		t.Errorf("a message was taken, although the server would drop it after two deliveries")
	}
	change(-1, 10) // and another limit that was less at the start
	until(t, "the second message", func() bool { return ran.Load() == 2 })
	if err := stop(); err != nil {
		t.Error(err)
	}
}

// An operator lowers AckWait below the time between two extensions while Serve runs, so that
// the server would deliver each message again while its handler runs.
func TestServe_AckWaitLoweredMeanwhile_TakesNothingUntilItIsUndone(t *testing.T) {
	t.Parallel()
	b := open(t, func(c *jetstream.ConsumerConfig) { c.AckWait = 30 * time.Second })
	var ran, refused atomic.Int64
	c := consumer(t, func(context.Context, *semel.Execution, *consume.Message) error {
		ran.Add(1)
		return nil
	}, &consume.Options{Observe: func(_ context.Context, e consume.Event) {
		if e.Kind == consume.EventReceiveFailed && strings.Contains(e.Err.Error(), "AckWait: is 14s") {
			refused.Add(1)
		}
	}})
	stop := serve(t, c, b.Connect(t))
	b.Publish(t, keyed("a"))
	until(t, "the first message", func() bool { return ran.Load() == 1 }) // Serve knows the AckWait by now
	change := func(d time.Duration) {
		cfg := b.consumer.CachedInfo().Config
		cfg.AckWait = d
		if _, err := b.js.UpdateConsumer(t.Context(), b.name, cfg); err != nil {
			t.Fatal(err)
		}
	}
	change(14 * time.Second)
	until(t, "an event that names AckWait", func() bool { return refused.Load() > 0 })
	b.Publish(t, keyed("b"))
	before := refused.Load()
	until(t, "another refusal", func() bool { return refused.Load() > before })
	if ran.Load() != 1 {
		t.Error("a message was taken")
	}
	change(15 * time.Second)
	until(t, "the second message", func() bool { return ran.Load() == 2 })
	if err := stop(); err != nil {
		t.Error(err)
	}
}

// An operator changes the stream of copies after the start of Serve, so that it acknowledges a
// letter and drops it. The letter's message is not acked until the stream keeps letters again.
func TestServe_StreamOfCopiesKeepsNothingMeanwhile_MessageWaits(t *testing.T) {
	t.Parallel()
	b := open(t, nil)
	copies, err := b.js.Stream(t.Context(), b.name+"-copies")
	if err != nil {
		t.Fatal(err)
	}
	was := copies.CachedInfo().Config
	changed := was
	changed.Retention = jetstream.InterestPolicy
	var refused, settled atomic.Int64
	serve(t, consumer(t, func(_ context.Context, _ *semel.Execution, m *consume.Message) error {
		if m.Key == "bad" {
			return semel.Final(errors.New("no"))
		}
		return nil
	}, &consume.Options{Observe: func(_ context.Context, e consume.Event) {
		switch {
		case e.Kind == consume.EventSettled:
			settled.Add(1)
		case e.Kind == consume.EventSettleFailed && strings.Contains(e.Err.Error(), "nats stream edit "+b.name+"-copies --retention limits"):
			refused.Add(1)
		}
	}}), b.Connect(t))
	b.Publish(t, keyed("good"))
	until(t, "Serve has started", func() bool { return settled.Load() == 1 })
	if _, err := b.js.UpdateStream(t.Context(), changed); err != nil {
		t.Fatal(err)
	}
	b.Publish(t, keyed("bad"))
	until(t, "a refused letter, or an acked message", func() bool { return refused.Load() > 0 || settled.Load() > 1 })
	if settled.Load() > 1 {
		t.Fatal("the message is acked, and its letter is dropped")
	}
	if _, err := b.js.UpdateStream(t.Context(), was); err != nil {
		t.Fatal(err)
	}
	until(t, "the message acked", func() bool { return settled.Load() == 2 })
	if l := b.Copies(t, driver.DeadLetter); len(l) != 1 {
		t.Errorf("%d letters, want 1", len(l))
	}
}
