package outbox_test

import (
	"context"
	"errors"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/semel-go/semel/outbox"
	"github.com/semel-go/semel/outbox/outboxtest"
)

// damaged is a store that cannot read the headers of one message.
type damaged struct {
	*outboxtest.Memory
	id string
}

func (d damaged) Take(ctx context.Context, lanes []outbox.Lane, busy []int64, paused []string, limit int) ([]outbox.Taken, error) {
	taken, err := d.Memory.Take(ctx, lanes, busy, paused, limit)
	for i := range taken {
		if taken[i].ID == d.id {
			taken[i].Unreadable = errors.New("damaged")
		}
	}
	return taken, err
}

// A message that cannot be read stops its order key, but not before the message before it is
// sent, also if that fails for a while.
func TestPublisher_UnreadableBehindFailed_FirstIsSent(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		m := outboxtest.NewMemory()
		for _, id := range []string{"first", "bad", "later"} {
			if err := m.Put(t.Context(), outbox.Message{Topic: "t", OrderKey: "k", ID: id}); err != nil {
				t.Fatal(err)
			}
		}
		var fails atomic.Bool
		fails.Store(true)
		sink := &outboxtest.Sink{Fail: func(context.Context, *outbox.Message) error {
			if fails.Load() {
				return errors.New("away")
			}
			return nil
		}}
		start(t, damaged{m, "bad"}, sink, nil)
		time.Sleep(time.Second)
		fails.Store(false)
		time.Sleep(10 * time.Minute)
		var sent []string
		for _, m := range sink.Sent() {
			sent = append(sent, m.ID)
		}
		if len(sent) != 1 || sent[0] != "first" {
			t.Errorf("%q are sent, want first alone", sent)
		}
		s, err := m.Stats(t.Context())
		if err != nil || s.Quarantined != 1 {
			t.Errorf("%d messages in the quarantine, %v; want 1", s.Quarantined, err)
		}
	})
}
