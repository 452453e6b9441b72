package semelamqp

import (
	"context"
	"errors"
	"fmt"
	"testing"
	"testing/synctest"
	"time"

	amqp "github.com/rabbitmq/amqp091-go"
	"github.com/semel-go/semel/consume/driver"
	"github.com/semel-go/semel/consume/semelamqp/amqptest"
)

// An error of the channel, such as a tag that it does not know, ends all its
// deliveries, and the next one is on another channel.
func TestLink_BrokerClosesTheChannel_IsMadeAgain(t *testing.T) {
	s := amqptest.Shared(t)
	src, err := New(s.URL(), "channel-error", &Options{Declare: DeclareAll, Kind: Classic})
	if err != nil {
		t.Fatal(err)
	}
	defer func() {
		if err := src.Close(); err != nil {
			t.Error(err)
		}
	}()
	if _, err := src.Info(t.Context()); err != nil {
		t.Fatal(err)
	}
	l := src.link.Load()
	if err := l.ch.Ack(99, false); err != nil {
		t.Fatal(err)
	}
	<-l.over
	if !is(l.err, amqp.PreconditionFailed) {
		t.Errorf("it ended for %v", l.err)
	}
	d := &delivery{s: src, l: l}
	if err := d.Ack(t.Context()); !errors.Is(err, driver.ErrGone) || !is(err, amqp.PreconditionFailed) {
		t.Errorf("an ack says %v", err)
	}
	if _, err := src.Info(t.Context()); err != nil {
		t.Fatal(err)
	}
	if now := src.link.Load(); now == l || now.isOver() {
		t.Error("there is no new link")
	}
}

// Stop gives back the messages that were sent ahead; after the next Info they
// are taken again.
func TestStop_MessagesSentAhead_ReturnsThemToTheQueue(t *testing.T) {
	s := amqptest.Shared(t)
	name := fmt.Sprint("release", time.Now().UnixNano())
	src, err := New(s.URL(), name, &Options{Declare: DeclareAll, Kind: Classic})
	if err != nil {
		t.Fatal(err)
	}
	defer src.Close()
	if _, err := src.Info(t.Context()); err != nil {
		t.Fatal(err)
	}
	l := src.link.Load()
	publish := func(n int) {
		for range n {
			if err := l.ch.PublishWithContext(t.Context(), "", name, true, false, amqp.Publishing{}); err != nil {
				t.Fatal(err)
			}
		}
	}
	publish(5)
	ds, err := src.Next(t.Context(), 10)
	if err != nil || len(ds) == 0 {
		t.Fatal(len(ds), err)
	}
	ready := func() string {
		n, err := s.Eval(`begin {ok, Q} = rabbit_amqqueue:lookup(rabbit_misc:r(<<"/">>, queue, <<"` + name + `">>)), proplists:get_value(messages_ready, rabbit_amqqueue:info(Q, [messages_ready])) end`)
		if err != nil {
			t.Fatal(err)
		}
		return n
	}
	for range 2 { // the second finds nothing to do
		if err := src.Stop(t.Context()); err != nil {
			t.Fatal(err)
		}
	}
	if l.stop != nil {
		t.Error("the broker's consumer was not cancelled")
	}
	if err := l.take(name, 10); err != nil || l.stop != nil {
		t.Errorf("a late take began after Stop, or failed: %v", err)
	}
	for end := time.Now().Add(4 * time.Minute); ready() != string(rune('0'+5-len(ds))) && time.Now().Before(end); <-time.After(5 * time.Millisecond) {
	}
	if n := ready(); n != string(rune('0'+5-len(ds))) {
		t.Errorf("%s messages are ready, %d are in work", n, len(ds))
	}
	if _, err := src.Info(t.Context()); err != nil {
		t.Fatal(err)
	}
	publish(1) // the first Next may have had all
	again, err := src.Next(t.Context(), 10)
	if err != nil || len(again) == 0 || l.isOver() {
		t.Errorf("the next one: %d messages, %v", len(again), err)
	}
}

func TestPause_Failures_GrowsAndEndsWithItsContext(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		d := &dialer{}
		if began := time.Now(); d.pause(t.Context()) != nil || time.Since(began) != 0 {
			t.Error("it pauses without a failure")
		}
		longest := time.Duration(0)
		for n := range 100 {
			d.ended(false)
			began := time.Now()
			if err := d.pause(t.Context()); err != nil {
				t.Fatal(err)
			}
			took := time.Since(began)
			if bound := min(firstPause<<min(n, 10), lastPause); took >= bound {
				t.Errorf("after %d failures it pauses for %v, want less than %v", n+1, took, bound)
			}
			longest = max(longest, took)
		}
		if longest < lastPause/2 {
			t.Errorf("the longest of 100 pauses was %v", longest)
		}
		ctx, cancel := context.WithCancel(t.Context())
		cancel()
		if began := time.Now(); d.pause(ctx) == nil || time.Since(began) != 0 {
			t.Error("it pauses although its context has ended")
		}
		if d.ended(true); d.failures != 0 {
			t.Errorf("%d failures after a success", d.failures)
		}
	})
}
