package semelamqp

import (
	"context"
	"errors"
	"fmt"
	"net"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	amqp "github.com/rabbitmq/amqp091-go"

	"github.com/semel-go/semel/consume/driver"
	"github.com/semel-go/semel/outbox"
)

// A broker that goes silent in the middle holds up no shutdown.
func TestNext_CallUnanswered_EndsWithItsContext(t *testing.T) {
	for name, call := range map[string][2]uint16{"of a channel": {20, 10}, "of a queue": {50, 10}, "of a prefetch": {60, 10}, "of a consumer": {60, 20}} {
		p := newPuppet(t)
		s := p.source(Options{})
		came := p.ignores(call[0], call[1])
		ctx, cancel := context.WithCancel(t.Context())
		done := make(chan error, 1)
		go func() {
			_, err := s.Next(ctx, 1)
			done <- err
		}()
		<-came
		cancel()
		select {
		case err := <-done:
			if err == nil {
				t.Errorf("an answer %s that does not come: there is no error", name)
			}
		case <-time.After(10 * time.Second):
			t.Errorf("an answer %s that does not come: Next goes on after its context", name)
		}
	}
}

// Copies go on when the broker has memory again.
func TestForward_BrokerUnblocked_GoesOn(t *testing.T) {
	p := newPuppet(t)
	d := p.next(p.source(Options{}), "m")[0]
	until := func(what string, is func(err error) bool) {
		t.Helper()
		for end := time.Now().Add(10 * time.Second); ; <-time.After(time.Millisecond) {
			err := d.Forward(t.Context(), driver.DeadLetter, nil)
			if delete(d.sent, d.s.opt.DeadLetters); is(err) {
				return
			}
			if time.Now().After(end) {
				t.Fatalf("not %s: %v", what, err)
			}
		}
	}
	until("sent", func(err error) bool { return err == nil })
	p.tells(10, 60, "low on memory")
	until("refused", func(err error) bool { return err != nil && strings.Contains(err.Error(), "low on memory") })
	p.tells(10, 61)
	until("sent again", func(err error) bool { return err == nil })
}

// closing is a connection that notes its end.
type closing struct {
	net.Conn
	closed chan struct{}
	ended  atomic.Bool
}

func (c *closing) Close() error {
	if !c.ended.Swap(true) {
		close(c.closed)
	}
	return c.Conn.Close()
}

// A connection that is made while the Source is closed is closed, too: the one
// for taking, and the one for copies.
func TestClose_ConnectionBeingMade_ClosesIt(t *testing.T) {
	for at, name := range []string{"taking", "copies"} {
		p := newPuppet(t)
		var s *Source
		var o Options
		var made []*closing
		o.Config.Dial = func(network, addr string) (net.Conn, error) {
			conn, err := new(net.Dialer).DialContext(t.Context(), network, addr)
			if err != nil {
				return nil, err
			}
			c := &closing{Conn: conn, closed: make(chan struct{})}
			if made = append(made, c); len(made) == at+1 {
				_ = s.Close()
			}
			return c, nil
		}
		s = p.source(o)
		p.holds("m")
		ds, err := s.Next(t.Context(), 1)
		if at == 1 {
			if err != nil {
				t.Fatal(err)
			}
			err = ds[0].Forward(t.Context(), driver.DeadLetter, nil)
		}
		if err == nil {
			t.Errorf("%s: there is no error", name)
		}
		select {
		case <-made[at].closed:
		case <-time.After(10 * time.Second):
			t.Errorf("%s: the connection stays", name)
		}
		if _, err := s.Next(t.Context(), 1); !errors.Is(err, driver.ErrClosed) {
			t.Errorf("%s: Next after Close: %v", name, err)
		}
	}
}

// timed is a connection that notes until when a write may wait.
type timed struct {
	net.Conn
	until time.Time
}

func (c *timed) SetWriteDeadline(at time.Time) error {
	c.until = at
	return nil
}

func (c *timed) Write(b []byte) (int, error) { return len(b), nil }

// A broker that does not read, as one without memory does to those who publish,
// holds up no write for ever: each has a deadline of its own.
func TestWrite_BrokerDoesNotRead_TimesOut(t *testing.T) {
	c := &timed{}
	for range 2 {
		c.until = time.Time{}
		if _, err := (limited{c}).Write([]byte("m")); err != nil {
			t.Fatal(err)
		}
		if left := time.Until(c.until); left <= 0 || left > writeTimeout {
			t.Errorf("it may wait for %v, want %v", left, writeTimeout)
		}
	}
}

// A success resets the pauses, so that the next reconnection is immediate.
func TestPause_Success_EndsIt(t *testing.T) {
	p := newPuppet(t)
	s := p.source(Options{})
	s.dialer.ended(false)
	s.copies.dialer.ended(false)
	d := p.next(s, "m")[0]
	if err := d.Forward(t.Context(), driver.DeadLetter, nil); err != nil {
		t.Fatal(err)
	}
	if s.dialer.failures != 0 || s.copies.dialer.failures != 0 {
		t.Errorf("%d and %d failures are left", s.dialer.failures, s.copies.dialer.failures)
	}
}

// A quorum queue without a majority confirms nothing until it has one again. Here that is
// the queue of retries.
func TestForward_OneQueueConfirmsNothing_OthersTakeCopies(t *testing.T) {
	p := newPuppet(t)
	s := p.source(Options{})
	var bodies []string
	for i := range maxCopies + 1 {
		bodies = append(bodies, fmt.Sprint("m", i))
	}
	ds := p.next(s, bodies...)
	p.decides(silence)
	ctx, cancel := context.WithCancel(t.Context())
	var waiting sync.WaitGroup
	for _, d := range ds[:maxCopies] {
		waiting.Go(func() { _ = d.Nak(ctx, time.Second) })
	}
	for p.came() < maxCopies {
		<-time.After(time.Millisecond)
	}
	cancel()
	waiting.Wait()
	p.decides(kept)
	ctx, cancel = context.WithTimeout(t.Context(), 10*time.Second)
	defer cancel()
	if err := ds[maxCopies].Forward(ctx, driver.DeadLetter, nil); err != nil {
		t.Errorf("a dead letter waits for %d retries: %v", maxCopies, err)
	}
	if n := len(s.copies.slots.queues); n != 1 {
		t.Errorf("%d queues have places, want only the one that confirms nothing", n)
	}
}

// publishes sends messages with order keys of their own to topics through a sink. It
// confirms them after ready reports true, and checks that each is sent.
func (p *puppet) publishes(config amqp.Config, ready func() bool, topics ...string) {
	p.t.Helper()
	sink, err := NewSink(p.url, &SinkOptions{Config: config})
	if err != nil {
		p.t.Fatal(err)
	}
	defer func() { _ = sink.Close() }()
	messages := make([]outbox.Message, len(topics))
	for i, topic := range topics {
		messages[i] = outbox.Message{Topic: topic, ID: fmt.Sprint(i), OrderKey: fmt.Sprint(i)}
	}
	p.decides(silence)
	done := make(chan struct{})
	go func() {
		defer close(done)
		sink.Publish(p.t.Context(), messages, func(i int, err error) {
			if err != nil {
				p.t.Errorf("message %d to %s: %v", i, topics[i], err)
			}
		})
	}()
	isReady := false
	for end := time.Now().Add(10 * time.Second); ; {
		select {
		case <-done:
			return
		case <-time.After(time.Millisecond):
		}
		if isReady = isReady || ready(); isReady {
			p.confirm()
		} else if time.Now().After(end) {
			p.t.Errorf("after 10 s: %d messages have come", p.came())
			isReady = true
		}
	}
}

func TestSink_OneTopicConfirmsNothing_OthersAreSent(t *testing.T) {
	p := newPuppet(t)
	topics := slices.Repeat([]string{"silent"}, 2*maxCopies)
	p.publishes(amqp.Config{}, func() bool { return p.came() > maxCopies }, append(topics, "good")...)
}

func TestSink_AllChannelsInUse_MessagesWait(t *testing.T) {
	p := newPuppet(t)
	p.publishes(amqp.Config{ChannelMax: 1}, func() bool { return p.came() > 0 }, "silent", "good", "good too")
}
