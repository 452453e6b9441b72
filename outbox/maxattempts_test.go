package outbox_test

import (
	"context"
	"fmt"
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
