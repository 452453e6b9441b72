package natstest

import (
	"fmt"
	"net"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/nats-io/nats.go/jetstream"
	"github.com/semel-go/semel"
	"github.com/semel-go/semel/consume"
	"github.com/semel-go/semel/consume/driver"
	"github.com/semel-go/semel/consume/semelnats"
	"github.com/semel-go/semel/store"
	"github.com/semel-go/semel/store/memstore"
)

// Two groups of one stream, one stream of letters: each has its own letter.
func TestForward_TwoGroups_StoreTwoLetters(t *testing.T) {
	b := open(t, nil)
	ctx := t.Context()
	second, err := b.js.CreateOrUpdateConsumer(ctx, b.name, jetstream.ConsumerConfig{Durable: "second", AckPolicy: jetstream.AckExplicitPolicy, MaxDeliver: -1})
	if err != nil {
		t.Fatal(err)
	}
	if _, err := b.js.UpdateStream(ctx, jetstream.StreamConfig{Name: b.name + "-copies", Subjects: []string{b.name + ".dead", b.name + ".quarantine", b.name + ".dead2"}}); err != nil {
		t.Fatal(err)
	}
	o := b.opt
	o.DeadLetters = b.name + ".dead2"
	s2, err := semelnats.New(b.js, second, &o)
	if err != nil {
		t.Fatal(err)
	}
	serve(t, consumer(t, nop, nil), b.Connect(t))
	g, _ := semel.New(memstore.New(nil), nil)
	c2, err := consume.New(g, consume.Keyed("second", consume.FromHeader(consume.KeyHeader)), nop, &consume.Options{AllowShortRetention: true})
	if err != nil {
		t.Fatal(err)
	}
	serve(t, c2, s2)
	b.Publish(t, consume.Message{Body: []byte("no key")})
	until(t, "settled by both", func() bool {
		i, err := second.Info(ctx)
		return err == nil && i.AckFloor.Stream == 1 && b.Unsettled(t) == 0
	})
	one := len(b.Copies(t, driver.DeadLetter))
	b.opt.DeadLetters = b.name + ".dead2"
	two := len(b.Copies(t, driver.DeadLetter))
	if one != 1 || two != 1 {
		t.Errorf("%d letters of the first group and %d of the second; want one each", one, two)
	}
}

// Copies that go into the stream that is consumed would be consumed, too.
func TestInfo_LettersIntoTheConsumedStream_AreRefused(t *testing.T) {
	b := open(t, nil)
	b.opt.DeadLetters = b.name + ".in.dead"
	s, err := semelnats.New(b.js, b.consumer, &b.opt)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := s.Info(t.Context()); err == nil || !strings.Contains(err.Error(), "the stream that is consumed") {
		t.Errorf("got %v", err)
	}
}

// The stream is deleted and created again between two pulls of one Source.
func TestNext_StreamRecreatedBetweenPulls_HasOtherMessages(t *testing.T) {
	b := open(t, nil)
	ctx := t.Context()
	s := b.Connect(t)
	if _, err := s.Info(ctx); err != nil {
		t.Fatal(err)
	}
	ids := map[string]bool{}
	for range 2 {
		b.Publish(t, keyed("k"))
		var ds []driver.Delivery
		until(t, "delivered", func() bool {
			ds, _ = s.Next(ctx, 1)
			return len(ds) == 1
		})
		if err := ds[0].Ack(ctx); err != nil {
			t.Error(err)
		}
		ids[ds[0].Message().Origin.ID] = true
		_ = b.js.DeleteStream(ctx, b.name)
		_, _ = b.js.CreateStream(ctx, jetstream.StreamConfig{Name: b.name, Subjects: []string{b.name + ".in.>"}})
		_, _ = b.js.CreateConsumer(ctx, b.name, jetstream.ConsumerConfig{Durable: "group", AckPolicy: jetstream.AckExplicitPolicy, MaxDeliver: -1})
	}
	if len(ids) != 2 {
		t.Errorf("messages of two streams have one id: %v", ids)
	}
}

// A producer in another language sends a header with each name that NATS allows, which is
// printable ASCII without a colon (ADR-4). The Go client sends only some of them.
func TestForward_EachNameThatNATSAllows_IsInTheLetter(t *testing.T) {
	b := open(t, nil)
	header := "NATS/1.0\r\nidempotency-key: k\r\n"
	var want []store.Header
	for c := '!'; c <= '~'; c++ {
		if c != ':' {
			name := "h" + string(c)
			header += name + ": v\r\n"
			want = append(want, store.Header{Name: name, Value: "v"})
		}
	}
	header += "\r\n"
	conn, err := net.Dial("tcp", shared.Addr().String())
	if err != nil {
		t.Fatal(err)
	}
	defer conn.Close()
	if _, err := fmt.Fprintf(conn, "CONNECT {\"headers\":true}\r\nHPUB %s.in.x %d %d\r\n%sbody\r\n", b.name, len(header), len(header)+4, header); err != nil {
		t.Fatal(err)
	}
	serve(t, consumer(t, bulky, nil), b.Connect(t))
	var letters []consume.Message
	until(t, "one letter", func() bool {
		letters = b.Copies(t, driver.DeadLetter)
		return len(letters) == 1 && b.Unsettled(t) == 0
	})
	l := &letters[0]
	packed, ok := l.Header(driver.PackedHeaders)
	hs, err := driver.UnpackHeaders(packed)
	if !ok || err != nil {
		t.Fatalf("the packed headers are %q: %v", packed, err)
	}
	l.Headers = append(l.Headers, hs...)
	for _, h := range want {
		if !slices.Contains(l.Headers, h) {
			t.Errorf("the letter has no header %q", h.Name)
		}
	}
}

// The server replaces the delay of a Nak by AckWait if an extension follows, so that the Consumer
// sends none after it.
func TestNak_AfterExtend_DelayStays(t *testing.T) {
	b := open(t, func(c *jetstream.ConsumerConfig) { c.AckWait = time.Hour })
	b.Publish(t, keyed("k"))
	s := b.Connect(t)
	ctx := t.Context()
	for range 2 {
		var ds []driver.Delivery
		until(t, "delivered", func() bool {
			ds, _ = s.Next(ctx, 1)
			return len(ds) == 1
		})
		if err := ds[0].Extend(ctx); err != nil {
			t.Fatal(err)
		}
		if err := ds[0].Nak(ctx, 10*time.Millisecond); err != nil {
			t.Fatal(err)
		}
	}
}
