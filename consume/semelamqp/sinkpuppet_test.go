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
