package outbox_test

import (
	"context"
	"errors"
	"fmt"
	"math"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/semel-go/semel/outbox"
	"github.com/semel-go/semel/outbox/outboxtest"
)

// One topic is away for 10 minutes, and another works. When the topic is back, one of its
// messages still fails.
func TestPublisher_MaxAttemptsWhileOneTopicIsAway_QuarantinesBadMessageOnly(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		m := outboxtest.NewMemory()
		var isBack atomic.Bool
		sink := &outboxtest.Sink{Fail: func(_ context.Context, m *outbox.Message) error {
			if m.Topic == "away" && (!isBack.Load() || m.ID == "bad") {
				return errDown
			}
			return nil
		}}
		write := func(topic, id string) {
			if err := m.Put(t.Context(), outbox.Message{Topic: topic, ID: id}); err != nil {
				t.Fatal(err)
			}
		}
		for n := range 10 {
			write("away", fmt.Sprint(n))
		}
		start(t, m, sink, &outbox.Options{MaxAttempts: 5})
		for n := range 600 {
			write("works", fmt.Sprint(n))
			time.Sleep(time.Second)
		}
		if s, _ := m.Stats(t.Context()); s.Quarantined > 0 {
			t.Errorf("%d of 10 messages are in the quarantine, because their topic was away", s.Quarantined)
		}
		isBack.Store(true)
		time.Sleep(2 * time.Minute)
		write("away", "bad")
		time.Sleep(10 * time.Minute)
		if s, _ := m.Stats(t.Context()); s != (outbox.Stats{Held: 1, OldestAge: s.OldestAge}) {
			t.Errorf("%+v; want the bad message held, because it is alone in its topic", s)
		}
		write("away", "good")
		time.Sleep(2 * time.Minute)
		if s, _ := m.Stats(t.Context()); s != (outbox.Stats{Quarantined: 1, StoppedKeys: 1}) {
			t.Errorf("%+v; want the bad message in the quarantine, because another one of its topic was sent", s)
		}
	})
}

// The pauses that a destination asks for are longer than Backoff. Other messages of the topic
// are sent during them, so that it is not away.
func TestPublisher_MaxAttemptsAndSinkAsksForPauses_QuarantinesMessage(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		m := outboxtest.NewMemory()
		sink := &outboxtest.Sink{Fail: func(_ context.Context, m *outbox.Message) error {
			if m.OrderKey == "bad" {
				return outbox.RetryAfter(errDown, 10*time.Minute)
			}
			return nil
		}}
		start(t, m, sink, &outbox.Options{MaxAttempts: 3})
		put(t, m, "bad", 0, 1)
		for n := range 3 {
			time.Sleep(5 * time.Minute)
			put(t, m, "good", n, n+1)
			time.Sleep(5 * time.Minute)
		}
		if s, _ := m.Stats(t.Context()); s.Quarantined != 1 {
			t.Errorf("%+v; want the bad message in the quarantine", s)
		}
	})
}

// An outage begins soon after a message was sent, and ends its first seconds with an answer that
// asks for a long pause.
func TestPublisher_MaxAttemptsAndOutageAsksForPause_QuarantinesNothing(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		m := outboxtest.NewMemory()
		var attempts atomic.Int64
		sink := &outboxtest.Sink{Fail: func(_ context.Context, m *outbox.Message) error {
			if m.OrderKey == "good" {
				return nil
			}
			if attempts.Add(1) < 5 {
				return errDown
			}
			return outbox.RetryAfter(errDown, 5*time.Minute)
		}}
		start(t, m, sink, &outbox.Options{MaxAttempts: 5})
		put(t, m, "good", 0, 1)
		time.Sleep(20 * time.Second)
		put(t, m, "kept", 0, 1)
		time.Sleep(3 * time.Minute)
		if s, _ := m.Stats(t.Context()); s.Held != 1 || attempts.Load() < 5 {
			t.Errorf("%+v after %d attempts; want the message held, because nothing of its topic was sent", s, attempts.Load())
		}
	})
}

// A message fails until it is in the quarantine. Hours later its receiver works again, and an
// operator retries the message, but now the whole destination is away.
func TestPublisher_MaxAttemptsAndRetryDuringOutage_QuarantinesNothing(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		m := outboxtest.NewMemory()
		var isAway atomic.Bool
		sink := &outboxtest.Sink{Fail: func(_ context.Context, m *outbox.Message) error {
			if m.OrderKey == "bad" || isAway.Load() {
				return errDown
			}
			return nil
		}}
		start(t, m, sink, &outbox.Options{MaxAttempts: 3})
		put(t, m, "bad", 0, 1)
		for n := range 60 {
			put(t, m, "good", n, n+1)
			time.Sleep(time.Second)
		}
		bad, err := m.List(t.Context(), outbox.Quarantined, 0, 10)
		if err != nil || len(bad) != 1 {
			t.Fatalf("the quarantine has %+v, %v; want the bad message", bad, err)
		}
		time.Sleep(3 * time.Hour)
		put(t, m, "good", 60, 61)
		time.Sleep(5 * time.Minute)
		isAway.Store(true)
		if err := m.Retry(t.Context(), bad[0].Position); err != nil {
			t.Fatal(err)
		}
		time.Sleep(time.Minute)
		if s, _ := m.Stats(t.Context()); s.Held != 1 || s.Quarantined != 0 {
			t.Errorf("%+v; want the message held, because nothing of its topic was sent since the operator retried it", s)
		}
	})
}

// A lane goes to another publisher, and comes back. The attempts of that one count, and no
// message of the topic was sent since the last of them.
func TestPublishers_MaxAttemptsAndLaneComesBack_QuarantinesNothing(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		m := outboxtest.NewMemory()
		var isDown atomic.Bool
		isDown.Store(true)
		sink := &outboxtest.Sink{Fail: func(context.Context, *outbox.Message) error {
			if isDown.Load() {
				return errDown
			}
			return nil
		}}
		o := &outbox.Options{MaxAttempts: 3, Lease: time.Second, Backoff: func(int) time.Duration { return time.Minute }}
		start(t, m, sink, o)
		const n = 16 // as many as an outage lets through at once
		for k := range n {
			put(t, m, fmt.Sprint("kept", k), 0, 1)
		}
		time.Sleep(15 * time.Second)
		if held, err := m.List(t.Context(), outbox.Held, 0, 2*n); err != nil || len(held) != n {
			t.Fatalf("%d messages have failed once, error %v; want %d", len(held), err, n)
		}
		isDown.Store(false)
		put(t, m, "good", 0, 1)
		time.Sleep(5 * time.Second)
		isDown.Store(true)
		stop := start(t, m, sink, o) // gets half of the lanes
		time.Sleep(5 * time.Minute)
		stop()
		time.Sleep(10 * time.Minute)
		if s, _ := m.Stats(t.Context()); s.Quarantined != 0 || s.Held != n {
			t.Errorf("%+v; want %d messages held", s, n)
		}
	})
}

// The destination asks for a pause. The message is not sent earlier, and those of other order
// keys are.
func TestPublisher_SinkAsksForPause_OrderWaits(t *testing.T) {
	for asked, want := range map[time.Duration]time.Duration{
		time.Millisecond: time.Minute, 10 * time.Minute: 10 * time.Minute, math.MaxInt64: outbox.LongestDelay, -1: time.Minute,
	} {
		synctest.Test(t, func(t *testing.T) {
			m := outboxtest.NewMemory()
			var attempts atomic.Int64
			sink := &outboxtest.Sink{Fail: func(_ context.Context, m *outbox.Message) error {
				if m.OrderKey != "limited" {
					return nil
				}
				if attempts.Add(1) == 1 {
					return fmt.Errorf("answer: %w", outbox.RetryAfter(errDown, asked))
				}
				return nil
			}}
			start(t, m, sink, &outbox.Options{Backoff: func(int) time.Duration { return time.Minute }})
			put(t, m, "limited", 0, 2)
			time.Sleep(want - 5*time.Second)
			put(t, m, "other", 0, 1)
			time.Sleep(time.Second)
			if s, _ := m.Stats(t.Context()); attempts.Load() != 1 || s.Held+s.Waiting != 2 {
				t.Errorf("asked for %v: %d attempts before %v, %+v; want both messages of the key unsent", asked, attempts.Load(), want, s)
			}
			time.Sleep(15 * time.Second)
			if s, _ := m.Stats(t.Context()); attempts.Load() != 3 || s.Held+s.Waiting != 0 {
				t.Errorf("asked for %v: %d attempts after %v, %+v; want three", asked, attempts.Load(), want, s)
			}
		})
	}
	if err := outbox.RetryAfter(nil, time.Hour); err != nil {
		t.Errorf("of no error: %v", err)
	}
	if err := outbox.RetryAfter(errDown, time.Hour); !errors.Is(err, errDown) || outbox.IsPoison(err) || err.Error() != errDown.Error() {
		t.Errorf("got %v", err)
	}
}

// A pause of any length is at most LongestDelay, also when MaxAttempts asks whether the topic
// works.
func TestPublisher_BackoffForEver_QuarantinesBadMessage(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		m := outboxtest.NewMemory()
		sink := &outboxtest.Sink{Fail: func(_ context.Context, m *outbox.Message) error {
			if m.OrderKey == "bad" {
				return errDown
			}
			return nil
		}}
		start(t, m, sink, &outbox.Options{MaxAttempts: 2, Backoff: func(int) time.Duration { return math.MaxInt64 }})
		put(t, m, "bad", 0, 1)
		for n := range 3 {
			time.Sleep(outbox.LongestDelay / 2)
			put(t, m, "good", n, n+1)
		}
		time.Sleep(outbox.LongestDelay)
		if s, _ := m.Stats(t.Context()); s.Quarantined != 1 {
			t.Errorf("%+v; want the bad message in the quarantine", s)
		}
	})
}

// Functions of the options that panic do not end the process, and the default pause follows.
func TestPublisher_OptionsPanic_GoesOn(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		m := outboxtest.NewMemory()
		var tries atomic.Int64
		sink := &outboxtest.Sink{Fail: func(context.Context, *outbox.Message) error {
			if tries.Add(1) <= 2 {
				return errDown
			}
			return nil
		}}
		began := time.Now()
		start(t, m, sink, &outbox.Options{Backoff: func(int) time.Duration { panic("boom") }, Observe: func(context.Context, outbox.Event) { panic("boom") }})
		put(t, m, "k", 0, 1)
		wait(t, sink, 1)
		if took := time.Since(began); took < 3*time.Second {
			t.Errorf("two pauses took %v, want 1s and 2s", took)
		}
	})
}
