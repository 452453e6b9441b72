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

	"github.com/semel-go/semel/consume"
	"github.com/semel-go/semel/consume/driver"
	"github.com/semel-go/semel/consume/semelnats"
)

// fill makes the stream of copies one that takes no more, until it is widened.
func (b *broker) fill(t *testing.T) (widen func()) {
	t.Helper()
	cfg := jetstream.StreamConfig{
		Name: b.name + "-copies", Subjects: []string{b.name + ".dead", b.name + ".quarantine", b.name + ".filler"},
		MaxMsgs: 1, Discard: jetstream.DiscardNew,
	}
	if _, err := b.js.UpdateStream(t.Context(), cfg); err != nil {
		t.Fatal(err)
	}
	if _, err := b.js.Publish(t.Context(), b.name+".filler", nil); err != nil {
		t.Fatal(err)
	}
	return func() {
		t.Helper()
		cfg.MaxMsgs = -1
		if _, err := b.js.UpdateStream(t.Context(), cfg); err != nil {
			t.Fatal(err)
		}
	}
}

// The server passes a letter on, and its stream refuses it: that is none.
func TestForward_StreamRefuses_IsSentAgain(t *testing.T) {
	b := open(t, nil)
	widen := b.fill(t)
	b.Publish(t, consume.Message{Body: []byte("no key")})
	var refused, settled atomic.Int64
	serve(t, consumer(t, nop, &consume.Options{Observe: func(_ context.Context, e consume.Event) {
		var api *jetstream.APIError
		switch {
		case e.Kind == consume.EventSettled:
			settled.Add(1)
		case e.Kind == consume.EventSettleFailed && errors.As(e.Err, &api):
			refused.Add(1)
		}
	}}), b.Connect(t))
	until(t, "refused, or settled", func() bool { return refused.Load() > 2 || settled.Load() > 0 })
	if n := settled.Load(); n != 0 {
		t.Fatal("the message was acked without its letter")
	}
	widen()
	until(t, "settled", func() bool { return b.Unsettled(t) == 0 })
	if l := b.Copies(t, driver.DeadLetter); len(l) != 1 || string(l[0].Body) != "no key" {
		t.Errorf("%d letters", len(l))
	}
}

// The server says once that it stops to deliver a message. If its copy is
// refused then, it is tried until it is kept.
func TestWatchMaxDeliver_CopyRefused_TriesAgain(t *testing.T) {
	b := open(t, func(c *jetstream.ConsumerConfig) { c.MaxDeliver, c.AckWait = 1, 50*time.Millisecond })
	b.opt.MaxDeliver, b.opt.OrderKey = true, nil
	widen := b.fill(t)
	tries, err := b.js.Conn().SubscribeSync(b.opt.DeadLetters) // it hears what its stream refuses
	if err != nil {
		t.Fatal(err)
	}
	s, err := semelnats.New(b.js, b.consumer, &b.opt)
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(t.Context())
	watched := make(chan error, 1)
	before := b.js.Conn().NumSubscriptions()
	go func() { watched <- s.WatchMaxDeliver(ctx) }()
	until(t, "subscribed", func() bool { return b.js.Conn().NumSubscriptions() > before })
	if err := b.js.Conn().Flush(); err != nil {
		t.Fatal(err)
	}
	b.Publish(t, keyed("k"))
	until(t, "delivered, and its copy tried", func() bool {
		_, _ = s.Next(ctx, 1) // and its consumer dies; a client that is stopped for a second may lose it
		n, _, err := tries.Pending()
		return n > 0 && err == nil
	})
	for n := range 2 {
		if _, err := tries.NextMsg(8 * time.Second); err != nil {
			t.Fatalf("its copy was tried %d times: %v", n, err)
		}
	}
	widen()
	until(t, "a dead letter", func() bool { return len(b.Copies(t, driver.DeadLetter)) == 1 })
	cancel()
	if err := <-watched; err != nil {
		t.Errorf("WatchMaxDeliver: %v", err)
	}
}

// watch watches until cancel is called, and has subscribed.
func (b *broker) watch(t *testing.T, s *semelnats.Source) (cancel context.CancelFunc, watched chan error) {
	t.Helper()
	ctx, cancel := context.WithCancel(t.Context())
	watched = make(chan error, 1)
	before := b.js.Conn().NumSubscriptions()
	go func() { watched <- s.WatchMaxDeliver(ctx) }()
	until(t, "subscribed", func() bool { return b.js.Conn().NumSubscriptions() > before })
	if err := b.js.Conn().Flush(); err != nil {
		t.Fatal(err)
	}
	return cancel, watched
}

// The server sends an advisory to one member only. When that member ends, it
// copies the messages of its open advisories, or names them.
func TestWatchMaxDeliver_ContextEnds_CopiesTheRest(t *testing.T) {
	for name, full := range map[string]bool{"the copies are taken": false, "the copies are refused": true} {
		t.Run(name, func(t *testing.T) {
			const n = 50
			b := open(t, func(c *jetstream.ConsumerConfig) { c.MaxDeliver, c.AckWait = 1, 50*time.Millisecond })
			b.opt.MaxDeliver, b.opt.OrderKey = true, nil
			if full {
				b.fill(t)
			}
			advisories, err := b.js.Conn().SubscribeSync("$JS.EVENT.ADVISORY.CONSUMER.MAX_DELIVERIES." + b.name + ".group")
			if err != nil {
				t.Fatal(err)
			}
			s, err := semelnats.New(b.js, b.consumer, &b.opt)
			if err != nil {
				t.Fatal(err)
			}
			cancel, watched := b.watch(t, s)
			for i := range n {
				b.Publish(t, keyed(fmt.Sprint("k", i)))
			}
			advised := 0 // a client that is stopped for a second may lose a message, whose advisory comes all the same
			until(t, "an advisory of each message", func() bool {
				if _, err := s.Next(t.Context(), n); err != nil { // and its consumer dies
					t.Fatal(err)
				}
				for ; advised < n; advised++ {
					if _, err := advisories.NextMsg(time.Millisecond); errors.Is(err, nats.ErrTimeout) {
						break
					} else if err != nil {
						t.Fatal(err)
					}
				}
				return advised == n
			})
			cancel()
			switch err := <-watched; {
			case full:
				if err == nil || !strings.Contains(err.Error(), "50 messages") {
					t.Errorf("WatchMaxDeliver: %v, want that 50 messages were not copied", err)
				}
			case err != nil:
				t.Errorf("WatchMaxDeliver: %v", err)
			default:
				if l := b.Copies(t, driver.DeadLetter); len(l) != n {
					t.Errorf("%d dead letters of %d messages", len(l), n)
				}
			}
		})
	}
}

// A message that its stream has dropped needs no copy.
func TestWatchMaxDeliver_MessageDeleted_IsDone(t *testing.T) {
	b := open(t, func(c *jetstream.ConsumerConfig) { c.MaxDeliver = 1 })
	b.opt.MaxDeliver, b.opt.OrderKey = true, nil
	s, err := semelnats.New(b.js, b.consumer, &b.opt)
	if err != nil {
		t.Fatal(err)
	}
	cancel, watched := b.watch(t, s)
	subject := fmt.Sprintf("$JS.EVENT.ADVISORY.CONSUMER.MAX_DELIVERIES.%s.group", b.name)
	if err := b.js.Conn().Publish(subject, []byte(`{"stream_seq":7,"deliveries":1}`)); err != nil {
		t.Fatal(err)
	}
	if err := b.js.Conn().Flush(); err != nil {
		t.Fatal(err)
	}
	cancel()
	if err := <-watched; err != nil {
		t.Errorf("WatchMaxDeliver: %v", err)
	}
}

// Serve extends its messages in the rhythm of Info.AckWait, so that the server
// gives them to no other member.
func TestInfo_ReturnsTheServersSettings(t *testing.T) {
	b := open(t, func(c *jetstream.ConsumerConfig) { c.AckWait = 7 * time.Second })
	if _, err := b.js.UpdateStream(t.Context(), jetstream.StreamConfig{Name: b.name, Subjects: []string{b.name + ".in.>"}, MaxAge: time.Hour}); err != nil {
		t.Fatal(err)
	}
	i, err := b.Connect(t).Info(t.Context())
	if want := (driver.Info{AckWait: 7 * time.Second, Horizon: time.Hour}); err != nil || i != want {
		t.Errorf("it is %+v, %v; want %+v", i, err, want)
	}
}
