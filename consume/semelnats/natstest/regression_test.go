package natstest

import (
	"strings"
	"testing"

	"github.com/nats-io/nats.go/jetstream"
	"github.com/semel-go/semel"
	"github.com/semel-go/semel/consume"
	"github.com/semel-go/semel/consume/driver"
	"github.com/semel-go/semel/consume/semelnats"
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
