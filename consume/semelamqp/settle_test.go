package semelamqp

import (
	"context"
	"errors"
	"testing"
	"time"

	"github.com/semel-go/semel/consume"
	"github.com/semel-go/semel/consume/driver"
)

// source is one of the puppet's queue "q".
func (p *puppet) source(o Options) *Source {
	p.t.Helper()
	o.Declare = DeclareAll
	s, err := New(p.url, "q", &o)
	if err != nil {
		p.t.Fatal(err)
	}
	p.t.Cleanup(func() { _ = s.Close() })
	return s
}

// The ways to leave a message to a copy.
var leave = map[string]func(ctx context.Context, d *delivery) error{
	"a letter": func(ctx context.Context, d *delivery) error {
		if err := d.Forward(ctx, driver.DeadLetter, nil); err != nil {
			return err
		}
		return d.Ack(ctx)
	},
	"a retry": func(ctx context.Context, d *delivery) error { return d.Nak(ctx, time.Second) },
}

// A full queue refuses a copy. A copy without a queue is returned, and
// confirmed all the same. In both cases only the message itself is left.
func TestForward_BrokerDoesNotKeepTheCopy_Fails(t *testing.T) {
	for name, end := range leave {
		for why, v := range map[error]verdict{errRefused: refused, errUnroutable: unroutable} {
			p := newPuppet(t)
			d := p.next(p.source(Options{}), "m")[0]
			p.decides(v)
			for range 3 {
				if err := end(t.Context(), d); !errors.Is(err, why) {
					t.Errorf("%s: %v, want %v", name, err, why)
				}
			}
			p.decides(kept)
			if err := end(t.Context(), d); err != nil {
				t.Errorf("%s, when it is kept: %v", name, err)
			}
			p.hears("1 ack 1")
		}
	}
}

// A confirm that is late is waited for: neither is the message acked before it,
// nor is the copy sent again.
func TestForward_LateConfirm_IsWaitedFor(t *testing.T) {
	for name, end := range leave {
		p := newPuppet(t)
		d := p.next(p.source(Options{}), "m")[0]
		p.decides(silence)
		for range 2 {
			ctx, cancel := context.WithCancel(t.Context())
			go func() { // the caller's time is over when the broker has the copy
				for p.came() == 0 {
					<-time.After(time.Millisecond)
				}
				cancel()
			}()
			if err := end(ctx, d); !errors.Is(err, context.Canceled) {
				t.Errorf("%s that is not confirmed: %v", name, err)
			}
		}
		p.hears()
		p.decides(kept)
		p.confirm()
		if err := end(t.Context(), d); err != nil || p.came() != 1 {
			t.Errorf("%s that is confirmed: %v, of %d copies", name, err, p.came())
		}
		p.hears("1 ack 1")
	}
}

// A copy that fails after its waiter has gone says nothing of the next one.
func TestForward_LateFailure_SendsAgain(t *testing.T) {
	for name, end := range leave {
		p := newPuppet(t)
		d := p.next(p.source(Options{}), "m")[0]
		p.decides(silence)
		ctx, cancel := context.WithCancel(t.Context())
		go func() {
			for p.came() == 0 {
				<-time.After(time.Millisecond)
			}
			cancel()
		}()
		if err := end(ctx, d); !errors.Is(err, context.Canceled) {
			t.Errorf("%s that is not confirmed: %v", name, err)
		}
		p.decides(kept)
		p.mu.Lock()
		_ = p.lines[1].Close() // the connection for copies
		p.mu.Unlock()
		for _, c := range d.sent {
			<-c.done
		}
		if err := end(t.Context(), d); err != nil || p.came() != 2 {
			t.Errorf("%s that is kept: %v, of %d copies", name, err, p.came())
		}
		p.hears("1 ack 1")
	}
}

// The messages before and after an acked one are still in hand.
func TestAck_AcksOneMessage(t *testing.T) {
	p := newPuppet(t)
	ds := p.next(p.source(Options{}), "a", "b", "c")
	for _, i := range []int{2, 0} {
		if err := ds[i].Ack(t.Context()); err != nil {
			t.Error(err)
		}
	}
	if err := ds[1].Nak(t.Context(), 0); err != nil {
		t.Error(err)
	}
	p.hears("1 ack 3", "1 ack 1", "1 nack 2 again")
	if n := ds[0].l.out.Load(); n != 0 {
		t.Errorf("%d messages are believed to be in work", n)
	}
}

// Each channel counts its delivery tags from 1: an ack of an old delivery must
// not reach the message that has its tag now.
func TestAck_OldChannel_IsErrGone(t *testing.T) {
	p := newPuppet(t)
	s := p.source(Options{})
	old := p.next(s, "old")[0]
	p.cut()
	<-old.Revoked()
	again := p.next(s, "new")[0]
	for name, err := range map[string]error{
		"Ack": old.Ack(t.Context()), "Nak": old.Nak(t.Context(), 0), "a retry": old.Nak(t.Context(), time.Hour),
		"Forward": old.Forward(t.Context(), driver.DeadLetter, nil),
	} {
		if !errors.Is(err, driver.ErrGone) {
			t.Errorf("%s: %v, want ErrGone", name, err)
		}
	}
	if again.raw.DeliveryTag != old.raw.DeliveryTag || p.came() != 0 {
		t.Errorf("the tags are %d and %d, and %d copies were sent", old.raw.DeliveryTag, again.raw.DeliveryTag, p.came())
	}
	if err := again.Nak(t.Context(), 0); err != nil {
		t.Error(err)
	}
	p.hears("2 nack 1 again")
}

// Messages that the broker sent ahead go back to the queue when the source
// stops.
func TestStop_SentAhead_GoesBack(t *testing.T) {
	p := newPuppet(t)
	s := p.source(Options{Prefetch: 10})
	p.holds("a", "b", "c")
	ds, err := s.Next(t.Context(), 1)
	if err != nil || len(ds) != 1 {
		t.Fatal(len(ds), err)
	}
	if err := s.Stop(t.Context()); err != nil {
		t.Error(err)
	}
	p.hears("1 nack 2 again", "1 nack 3 again")
	if err := ds[0].Ack(t.Context()); err != nil {
		t.Error(err)
	}
	p.hears("1 nack 2 again", "1 nack 3 again", "1 ack 1")
}

// Messages with an order key go back in the order of their delivery, whatever
// the order of the Naks.
func TestNak_OrderKey_GoesBackInDeliveryOrder(t *testing.T) {
	p := newPuppet(t)
	s := p.source(Options{OrderKey: func(*consume.Message) string { return "lane" }})
	ds := p.next(s, "a", "b", "c")
	for _, i := range []int{1, 2, 0} {
		if err := ds[i].Nak(t.Context(), 0); err != nil {
			t.Error(err)
		}
	}
	p.hears()
	ctx, cancel := context.WithCancel(t.Context())
	over := make(chan struct{})
	go func() {
		defer close(over)
		_, _ = s.Next(ctx, 3) // nothing comes
	}()
	p.hears("1 nack 1 again", "1 nack 2 again", "1 nack 3 again")
	cancel()
	<-over
}

// A second Serve begins with the messages that the first has given back, not
// with those that the broker had sent ahead.
func TestInfo_GivenBack_IsNotOvertaken(t *testing.T) {
	p := newPuppet(t)
	s := p.source(Options{Prefetch: 10, OrderKey: func(*consume.Message) string { return "lane" }})
	p.holds("a", "b", "c")
	ds, err := s.Next(t.Context(), 1)
	if err != nil || len(ds) != 1 {
		t.Fatal(len(ds), err)
	}
	if err := ds[0].Nak(t.Context(), 0); err != nil {
		t.Fatal(err)
	}
	if _, err := s.Info(t.Context()); err != nil { // the next Serve begins
		t.Fatal(err)
	}
	p.holds("a again", "b again", "c again")
	for _, want := range []string{"a again", "b again", "c again"} {
		ds, err := s.Next(t.Context(), 1)
		if err != nil || len(ds) != 1 || string(ds[0].Message().Body) != want {
			t.Fatalf("%d messages, %v; want %s", len(ds), err, want)
		}
	}
	p.hears() // all went back with the connection
}

// A message that is given back while Next waits goes back at once.
func TestNak_WhileNextWaits_GoesBackAtOnce(t *testing.T) {
	p := newPuppet(t)
	s := p.source(Options{OrderKey: func(*consume.Message) string { return "lane" }})
	d := p.next(s, "m")[0]
	ctx, cancel := context.WithCancel(t.Context())
	over := make(chan struct{})
	go func() {
		defer close(over)
		_, _ = s.Next(ctx, 1) // nothing comes
	}()
	l := s.link.Load()
	for l.wake(); len(l.ready) > 0; <-time.After(time.Millisecond) { // until Next waits
	}
	if err := d.Nak(t.Context(), 0); err != nil {
		t.Error(err)
	}
	p.hears("1 nack 1 again")
	cancel()
	<-over
}

// More is taken by another consumer, in place of the one before; for less
// nothing happens.
func TestTake_LargerPrefetch_ReplacesTheConsumer(t *testing.T) {
	p := newPuppet(t)
	s := p.source(Options{})
	for i, c := range []struct{ limit, cancels int }{{1, 0}, {5, 1}, {4, 1}, {3, 1}} {
		p.holds("m")
		if i > 1 { // the consumer that is there gets it
			p.mu.Lock()
			l := p.lines[0]
			l.tags++
			l.method(1, 60, 60, "semel-2", l.tags, byte(0), "", "q")
			l.content(1, "m")
			p.mu.Unlock()
		}
		if ds, err := s.Next(t.Context(), c.limit); err != nil || len(ds) != 1 {
			t.Fatal(len(ds), err)
		}
		p.mu.Lock()
		if p.cancels != c.cancels {
			t.Errorf("after a Next of %d: %d consumers were cancelled, want %d", c.limit, p.cancels, c.cancels)
		}
		p.mu.Unlock()
	}
}

// A channel that was closed while nothing was sent costs no copy.
func TestForward_ChannelClosed_UsesAnother(t *testing.T) {
	p := newPuppet(t)
	s := p.source(Options{})
	ds := p.next(s, "a", "b")
	if err := ds[0].Forward(t.Context(), driver.DeadLetter, nil); err != nil {
		t.Fatal(err)
	}
	for _, l := range s.copies.out.spare {
		if err := l.ch.Close(); err != nil {
			t.Fatal(err)
		}
	}
	if err := ds[1].Forward(t.Context(), driver.DeadLetter, nil); err != nil {
		t.Error(err)
	}
}
