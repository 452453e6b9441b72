package outbox_test

import (
	"context"
	"testing"
	"testing/synctest"
	"time"

	"github.com/semel-go/semel/outbox"
	"github.com/semel-go/semel/outbox/outboxtest"
)

// nilPointerError panics if it is a nil pointer.
type nilPointerError struct{ text string }

func (e *nilPointerError) Error() string { return e.text }

// A nil pointer in an error of a sink must not end the publisher's process.
func TestPublisher_ErrorIsNilPointer_MessageIsSentLaterOrQuarantined(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		m, failed := outboxtest.NewMemory(), false
		sink := &outboxtest.Sink{Fail: func(_ context.Context, m *outbox.Message) error {
			var e *nilPointerError
			switch {
			case m.Topic == "poison":
				return outbox.Poison(e)
			case failed:
				return nil
			}
			failed = true
			return e
		}}
		for _, topic := range []string{"later", "poison"} {
			if err := m.Put(t.Context(), outbox.Message{Topic: topic, ID: "1"}); err != nil {
				t.Fatal(err)
			}
		}
		start(t, m, sink, nil)
		time.Sleep(time.Hour)
		if s, err := m.Stats(t.Context()); err != nil || len(sink.Sent()) != 1 || s.Quarantined != 1 {
			t.Errorf("%d messages were sent, %+v, %v; want one sent and one quarantined", len(sink.Sent()), s, err)
		}
	})
}
