package semelamqp

import (
	"context"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/semel-go/semel/outbox"
	"github.com/semel-go/semel/outbox/outboxtest"
	"github.com/semel-go/semel/store"
)

// puppetSink is a sink to a puppet, with a short time limit.
func puppetSink(t *testing.T, p *puppet) *Sink {
	t.Helper()
	sink, err := NewSink(p.url, nil)
	if err != nil {
		t.Fatal(err)
	}
	sink.limits.Time = 100 * time.Millisecond
	t.Cleanup(func() { _ = sink.Close() })
	return sink
}

// The messages of a queue that confirms nothing take all places of the publisher, until the
// sink reports them as failed. The broker counts the message of the other topic: it is the
// first after those that the sink sends to the silent queue at once.
func TestSink_QueueConfirmsNothing_OtherTopicIsSent(t *testing.T) {
	p := newPuppet(t)
	p.decides(silence)
	m := outboxtest.NewMemory()
	tx := m.Begin()
	for n := range 100 {
		if err := tx.Put(t.Context(), outbox.Message{Topic: "silent", ID: fmt.Sprint(n)}); err != nil {
			t.Fatal(err)
		}
	}
	if err := tx.Put(t.Context(), outbox.Message{Topic: "other", ID: "1"}); err != nil {
		t.Fatal(err)
	}
	tx.Commit()
	failed := make(chan error, 1)
	pub, err := outbox.New(m, puppetSink(t, p), &outbox.Options{Batch: 50, InFlight: 50, Drain: time.Second, Observe: func(_ context.Context, e outbox.Event) {
		if e.Kind == outbox.EventFailed {
			select {
			case failed <- e.Err:
			default:
			}
		}
	}})
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(t.Context())
	done := make(chan error, 1)
	go func() { done <- pub.Run(ctx) }()
	t.Cleanup(func() {
		cancel()
		if err := <-done; err != nil {
			t.Errorf("Run: %v", err)
		}
	})
	if err := <-failed; !strings.Contains(err.Error(), "quorum_status") {
		t.Errorf("the event has the error %v", err)
	}
	for late := time.After(30 * time.Second); p.came() <= maxCopies; {
		select {
		case <-late:
			t.Fatal("the message of the other topic has not come in 30 s")
		case <-time.After(5 * time.Millisecond):
		}
	}
}

func TestSink_NameOfHeaderTooLong_IsPoison(t *testing.T) {
	m := outbox.Message{Topic: "a", ID: "1", Headers: []store.Header{{Name: strings.Repeat("n", longestName+1), Value: "v"}}}
	puppetSink(t, newPuppet(t)).Publish(t.Context(), []outbox.Message{m}, func(_ int, err error) {
		if !outbox.IsPoison(err) {
			t.Errorf("error %v, want poison", err)
		}
	})
}

// The queue confirms 16 messages each 500 ms, and the last ones wait longer for their place than
// a message may take. The limit is ten times the pause, so that a busy machine does not reach it.
func TestSink_QueueIsSlow_MessagesWaitForPlaces(t *testing.T) {
	t.Parallel()
	p := newPuppet(t)
	p.decides(silence)
	sink := puppetSink(t, p)
	sink.limits.Time = 5 * time.Second
	messages := make([]outbox.Message, 200)
	for n := range messages {
		messages[n] = outbox.Message{Topic: "slow", ID: fmt.Sprint(n)}
	}
	done := make(chan struct{})
	go func() {
		defer close(done)
		sink.Publish(t.Context(), messages, func(i int, err error) {
			if err != nil {
				t.Errorf("message %d: %v", i, err)
			}
		})
	}()
	confirms := time.NewTicker(500 * time.Millisecond)
	defer confirms.Stop()
	for {
		select {
		case <-confirms.C:
			p.confirm()
		case <-done:
			return
		}
	}
}

// The messages that have places are sent, and fail. The others wait for places.
func TestSink_QueueConfirmsNothing_MessagesWithoutPlaceFail(t *testing.T) {
	p := newPuppet(t)
	p.decides(silence)
	messages := make([]outbox.Message, 40)
	for n := range messages {
		messages[n] = outbox.Message{Topic: "silent", ID: fmt.Sprint(n)}
	}
	began := time.Now()
	puppetSink(t, p).Publish(t.Context(), messages, func(i int, err error) {
		if err == nil || !strings.Contains(err.Error(), "quorum_status") {
			t.Errorf("message %d: error %v, want one that names the next step", i, err)
		}
	})
	if took := time.Since(began); took > 10*time.Second {
		t.Errorf("it took %v, want about 100 ms", took)
	}
}
