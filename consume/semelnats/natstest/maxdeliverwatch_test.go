package natstest

import (
	"context"
	"strings"
	"testing"
	"time"

	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"
	"github.com/semel-go/semel/consume"
	"github.com/semel-go/semel/consume/driver"
	"github.com/semel-go/semel/consume/semelnats"
)

func TestNew_MaxDeliver_IsRefusedUnlessWatched(t *testing.T) {
	b := open(t, func(c *jetstream.ConsumerConfig) { c.MaxDeliver = 3 })
	if _, err := semelnats.New(b.js, b.consumer, &b.opt); err == nil || !strings.Contains(err.Error(), "MaxDeliver") {
		t.Errorf("New: %v", err)
	}
}

// watch watches for messages that have reached MaxDeliver. stop returns the error of the watch.
func watch(t *testing.T, b *broker) (s *semelnats.Source, stop func() error) {
	t.Helper()
	b.opt.MaxDeliver, b.opt.OrderKey = true, nil
	s, err := semelnats.New(b.js, b.consumer, &b.opt)
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(t.Context())
	watched := make(chan error, 1)
	go func() { watched <- s.WatchMaxDeliver(ctx) }()
	until(t, "subscribed", func() bool { return b.js.Conn().NumSubscriptions() > 1 })
	if err := b.js.Conn().Flush(); err != nil {
		t.Fatal(err)
	}
	return s, func() error {
		cancel()
		return <-watched
	}
}

func TestWatchMaxDeliver_LimitReached_DeadLetters(t *testing.T) {
	b := open(t, func(c *jetstream.ConsumerConfig) { c.MaxDeliver, c.AckWait = 2, 200*time.Millisecond })
	s, stop := watch(t, b)
	b.Publish(t, keyed("k"))
	if _, err := s.Info(t.Context()); err != nil {
		t.Fatal(err)
	}
	until(t, "a dead letter", func() bool {
		_, _ = s.Next(t.Context(), 1) // and its consumer dies
		return len(b.Copies(t, driver.DeadLetter)) == 1
	})
	l := b.Copies(t, driver.DeadLetter)[0]
	for name, want := range map[string]string{
		consume.KeyHeader: "k", driver.LetterReason: string(driver.ReasonDeliveries), driver.LetterDeliveries: "2", driver.LetterTopic: b.name + ".in.x", driver.LetterOffset: "1",
	} {
		if got, _ := l.Header(name); got != want {
			t.Errorf("header %s is %q, want %q", name, got, want)
		}
	}
	if string(l.Body) != "k" {
		t.Errorf("the body is %q", l.Body)
	}
	if err := stop(); err != nil {
		t.Errorf("WatchMaxDeliver: %v", err)
	}
}

// The stored headers of a message without a body look like the server's answer that it has
// no such message. It is copied all the same.
func TestWatchMaxDeliver_MessageLooksLikeNotFound_DeadLetters(t *testing.T) {
	b := open(t, func(c *jetstream.ConsumerConfig) { c.MaxDeliver, c.AckWait = 1, 100*time.Millisecond })
	stream, err := b.js.Stream(t.Context(), b.name)
	if err != nil {
		t.Fatal(err)
	}
	cfg := stream.CachedInfo().Config
	cfg.AllowDirect = true
	if _, err := b.js.UpdateStream(t.Context(), cfg); err != nil {
		t.Fatal(err)
	}
	s, stop := watch(t, b)
	m := nats.NewMsg(b.name + ".in.x")
	m.Header.Set("Status", "404")
	if _, err := b.js.PublishMsg(t.Context(), m); err != nil {
		t.Fatal(err)
	}
	until(t, "a dead letter", func() bool {
		_, _ = s.Next(t.Context(), 1) // the client drops it
		return len(b.Copies(t, driver.DeadLetter)) == 1
	})
	if err := stop(); err != nil {
		t.Errorf("WatchMaxDeliver: %v", err)
	}
}

// A message whose letter does not fit must not delay the others, and the error
// at the end names it.
func TestWatchMaxDeliver_CopyFails_OthersGoOn(t *testing.T) {
	b := open(t, func(c *jetstream.ConsumerConfig) { c.MaxDeliver, c.AckWait = 1, 100*time.Millisecond })
	s, stop := watch(t, b)
	large := keyed("large")
	large.Body = []byte(strings.Repeat("x", int(b.js.Conn().MaxPayload())-60))
	b.Publish(t, large)
	b.Publish(t, keyed("small"))
	if _, err := s.Info(t.Context()); err != nil {
		t.Fatal(err)
	}
	until(t, "a dead letter of the small one", func() bool {
		_, _ = s.Next(t.Context(), 2) // and its consumer dies
		l := b.Copies(t, driver.DeadLetter)
		return len(l) == 1 && string(l[0].Body) == "small"
	})
	if err := stop(); err == nil || !strings.Contains(err.Error(), "1 messages") || !strings.Contains(err.Error(), "[1]") {
		t.Errorf("WatchMaxDeliver: %v, want that message 1 was not copied", err)
	}
}
