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

// Messages of 4 MiB hang. Their topic has 512 places, which are 64 MiB, and another topic
// goes on.
func TestPublisher_LargeMessagesHang_BytesAreBounded(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		m := outboxtest.NewMemory()
		tx := m.Begin()
		body := make([]byte, 4<<20)
		for n := range 600 {
			_ = tx.Put(t.Context(), outbox.Message{Topic: "large", ID: fmt.Sprint(n), Body: body})
		}
		_ = tx.Put(t.Context(), outbox.Message{Topic: "works", ID: "w"})
		tx.Commit()
		works := make(chan time.Time, 1)
		var now, most atomic.Int64
		sink := hanging(works, all)
		fail := sink.Fail
		sink.Fail = func(ctx context.Context, m *outbox.Message) error {
			n := int64(len(m.Body))
			most.Store(max(most.Load(), now.Add(n)))
			defer now.Add(-n)
			return fail(ctx, m)
		}
		began := time.Now()
		start(t, m, sink, nil)
		if took := (<-works).Sub(began); took > 5*time.Second {
			t.Errorf("the message of the topic that works waited %v", took)
		}
		time.Sleep(time.Minute)
		if n := most.Load() >> 20; n > 80 {
			t.Errorf("the sink had %d MiB of messages at once, want at most 80", n)
		}
	})
}

// A message takes more places than there are, and is sent all the same.
func TestPublisher_MessageIsLargerThanAllPlaces_IsSent(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		m, sink := outboxtest.NewMemory(), &outboxtest.Sink{}
		body := make([]byte, 4<<20)
		for n := range 5 {
			if err := m.Put(t.Context(), outbox.Message{Topic: "large", ID: fmt.Sprint(n), Body: body}); err != nil {
				t.Fatal(err)
			}
		}
		start(t, m, sink, &outbox.Options{Batch: 2, InFlight: 3})
		wait(t, sink, 5)
	})
}
