package natstest

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"
	"github.com/semel-go/semel"
	"github.com/semel-go/semel/consume"
	"github.com/semel-go/semel/consume/consumetest"
	"github.com/semel-go/semel/consume/driver"
	"github.com/semel-go/semel/consume/semelnats"
	"github.com/semel-go/semel/internal/proctest"
	"github.com/semel-go/semel/store"
	"github.com/semel-go/semel/store/memstore"
)

// consumer is one over a new store.
func consumer(t testing.TB, h consume.Handler, o *consume.Options) *consume.Consumer {
	t.Helper()
	g, err := semel.New(memstore.New(nil), &semel.Options{Retention: consume.DefaultRetention})
	if err != nil {
		t.Fatal(err)
	}
	if o == nil {
		o = &consume.Options{}
	}
	o.Retention, o.AllowShortRetention = consume.DefaultRetention, true
	c, err := consume.New(g, consume.Keyed("natstest", consume.FromHeader(consume.KeyHeader)), h, o)
	if err != nil {
		t.Fatal(err)
	}
	return c
}

// serve serves until the test ends, or the returned function is called.
func serve(t testing.TB, c *consume.Consumer, s driver.Source) (stop func() error) {
	ctx, cancel := context.WithCancel(context.Background())
	done := make(chan error, 1)
	go func() { done <- c.Serve(ctx, s) }()
	ended := false
	stop = func() error {
		cancel()
		if ended {
			return nil
		}
		ended = true
		return <-done
	}
	t.Cleanup(func() { _ = stop() })
	return stop
}

// patience is how long a test waits for an event, on a busy machine.
const patience = 5 * time.Minute

func until(t testing.TB, what string, ready func() bool) {
	t.Helper()
	for end := time.Now().Add(patience); !ready(); <-time.After(5 * time.Millisecond) {
		if time.Now().After(end) {
			t.Fatalf("after %v: not %s", patience, what)
		}
	}
}

func keyed(key string) consume.Message {
	return consume.Message{Body: []byte(key), Headers: []store.Header{{Name: consume.KeyHeader, Value: key}}}
}

// A consumer may say how much one pull may ask for, and for how long.
func TestNext_ConsumerLimits_AreKept(t *testing.T) {
	b := open(t, func(c *jetstream.ConsumerConfig) {
		c.MaxRequestBatch, c.MaxRequestExpires = 2, 20*time.Millisecond
	})
	s := b.Connect(t)
	if ds, err := s.Next(t.Context(), 256); len(ds) != 0 || err != nil {
		t.Errorf("of an empty stream: %d messages, %v", len(ds), err)
	}
	b.Publish(t, keyed("a"), keyed("b"), keyed("c"))
	for got := 0; got < 3; { // a pull may end before the server has sent all messages
		ds, err := s.Next(t.Context(), 256)
		if got += len(ds); len(ds) > 2 || err != nil {
			t.Fatalf("%d messages, %v; want at most 2", len(ds), err)
		}
	}
	// An operator makes the limit less while the Source is there.
	if _, err := b.js.UpdateConsumer(t.Context(), b.name, jetstream.ConsumerConfig{
		Durable: "group", AckPolicy: jetstream.AckExplicitPolicy, AckWait: 1500 * time.Millisecond, MaxDeliver: -1, MaxRequestBatch: 1, MaxRequestExpires: 10 * time.Millisecond,
	}); err != nil {
		t.Fatal(err)
	}
	if _, err := s.Info(t.Context()); err != nil { // as Serve does at its start
		t.Fatal(err)
	}
	b.Publish(t, keyed("d"), keyed("e"))
	for got := 0; got < 2; {
		ds, err := s.Next(t.Context(), 256)
		if got += len(ds); len(ds) > 1 || err != nil {
			t.Fatalf("with the new limit: %d messages, %v; want at most 1", len(ds), err)
		}
	}
}

func TestServe_NoStreamForDeadLetters_IsRefused(t *testing.T) {
	b := open(t, nil)
	b.opt.DeadLetters = "nobody.takes.this"
	err := consumer(t, nop, nil).Serve(t.Context(), b.Connect(t))
	if err == nil || !strings.Contains(err.Error(), "nobody.takes.this") {
		t.Errorf("Serve: %v", err)
	}
}

func nop(context.Context, *semel.Execution, *consume.Message) error { return nil }

func TestServe_StreamKeepsLongerThanRetention_IsRefused(t *testing.T) {
	b := open(t, nil) // for ever
	g, err := semel.New(memstore.New(nil), nil)
	if err != nil {
		t.Fatal(err)
	}
	c, err := consume.New(g, consume.Keyed("natstest", consume.BrokerID()), nop, &consume.Options{Retention: 24 * time.Hour})
	if err != nil {
		t.Fatal(err)
	}
	if err := c.Serve(t.Context(), b.Connect(t)); err == nil || !strings.Contains(err.Error(), "Retention") {
		t.Errorf("Serve: %v", err)
	}
}

func TestServe_ConsumerDeleted_Returns(t *testing.T) {
	b := open(t, nil)
	done := make(chan error, 1)
	began := make(chan struct{}, 10)
	c := consumer(t, func(context.Context, *semel.Execution, *consume.Message) error {
		began <- struct{}{}
		return nil
	}, nil)
	go func() { done <- c.Serve(t.Context(), b.Connect(t)) }()
	b.Publish(t, keyed("k"))
	<-began
	if err := b.js.DeleteConsumer(t.Context(), b.name, "group"); err != nil {
		t.Fatal(err)
	}
	select {
	case err := <-done:
		if !errors.Is(err, driver.ErrClosed) {
			t.Errorf("Serve: %v", err)
		}
	case <-time.After(patience):
		t.Error("Serve goes on without a consumer")
	}
}

// A stream that is deleted and created again counts from 1 again. Its messages
// are different ones.
func TestServe_StreamRecreated_RunsItsMessages(t *testing.T) {
	ids := map[string]bool{}
	b := open(t, nil)
	for range 2 {
		s := b.Connect(t)
		if _, err := s.Info(t.Context()); err != nil {
			t.Fatal(err)
		}
		b.Publish(t, keyed("k"))
		var ds []driver.Delivery
		until(t, "delivered", func() bool {
			ds, _ = s.Next(t.Context(), 1)
			return len(ds) == 1
		})
		ids[ds[0].Message().Origin.ID] = true
		if err := b.js.DeleteStream(t.Context(), b.name); err != nil {
			t.Fatal(err)
		}
		if _, err := b.js.CreateStream(t.Context(), jetstream.StreamConfig{Name: b.name, Subjects: []string{b.name + ".in.>"}}); err != nil {
			t.Fatal(err)
		}
		if _, err := b.js.CreateConsumer(t.Context(), b.name, jetstream.ConsumerConfig{Durable: "group", AckPolicy: jetstream.AckExplicitPolicy, MaxDeliver: -1}); err != nil {
			t.Fatal(err)
		}
	}
	if len(ids) != 2 || ids[""] {
		t.Errorf("the ids are %v, want two", ids)
	}
}

// The server goes away and comes back, with messages in work and in the log.
func TestServe_ServerRestarts_GoesOn(t *testing.T) {
	dir := storeDir(t)
	port, err := proctest.FreePort()
	if err != nil {
		t.Fatal(err)
	}
	srv, err := startAt(dir, port)
	if err != nil {
		t.Fatal(err)
	}
	url := srv.ClientURL()
	nc, err := nats.Connect(url, nats.MaxReconnects(-1), nats.ReconnectWait(20*time.Millisecond))
	if err != nil {
		t.Fatal(err)
	}
	defer nc.Close()
	// A short time-out: a request that is lost while the server restarts is repeated.
	js, err := jetstream.New(nc, jetstream.WithDefaultTimeout(5*time.Second))
	if err != nil {
		t.Fatal(err)
	}
	ctx := t.Context()
	for name, subjects := range map[string][]string{"in": {"in"}, "copies": {"dead-letters.group", "quarantine.group"}} {
		if _, err := js.CreateStream(ctx, jetstream.StreamConfig{Name: name, Subjects: subjects}); err != nil {
			t.Fatal(err)
		}
	}
	cons, err := js.CreateConsumer(ctx, "in", jetstream.ConsumerConfig{Durable: "group", AckPolicy: jetstream.AckExplicitPolicy, AckWait: time.Second, MaxDeliver: -1})
	if err != nil {
		t.Fatal(err)
	}
	src, err := semelnats.New(js, cons, &semelnats.Options{PollWait: 100 * time.Millisecond})
	if err != nil {
		t.Fatal(err)
	}
	const n = 40
	publish := func(from, to int) {
		for i := from; i < to; i++ {
			m := nats.NewMsg("in")
			m.Header.Set(consume.KeyHeader, fmt.Sprint(i))
			// The server may take connections before its streams answer.
			until(t, "published", func() bool {
				_, err := js.PublishMsg(ctx, m, jetstream.WithMsgID(fmt.Sprint(i)))
				return err == nil
			})
		}
	}
	publish(0, n/2)
	var ran, failed atomic.Int64
	hold := make(chan struct{})
	stop := serve(t, consumer(t, func(context.Context, *semel.Execution, *consume.Message) error {
		if ran.Add(1) > 5 {
			<-hold
		}
		return nil
	}, &consume.Options{Observe: func(_ context.Context, e consume.Event) {
		if e.Kind == consume.EventReceiveFailed {
			failed.Add(1)
		}
	}}), src)
	until(t, "some run", func() bool { return ran.Load() > 5 })
	srv.Shutdown()
	srv.WaitForShutdown()
	close(hold)
	until(t, "the loss noticed", func() bool { return failed.Load() > 0 })
	srv, err = startAt(dir, port)
	if err != nil {
		t.Fatal(err)
	}
	defer srv.WaitForShutdown()
	defer srv.Shutdown()
	until(t, "connected again", nc.IsConnected)
	publish(n/2, n)
	until(t, "all settled", func() bool {
		i, err := cons.Info(ctx)
		return err == nil && i.AckFloor.Stream == n
	})
	if ran.Load() != n {
		t.Errorf("%d messages ran %d times", n, ran.Load())
	}
	if err := stop(); err != nil {
		t.Errorf("Serve: %v", err)
	}
}

var _ consumetest.Broker = (*broker)(nil)
