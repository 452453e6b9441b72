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

// sparse is a store with messages of 4 MiB that notes how many a Take may return after the first one
// has shown their size.
type sparse struct {
	outbox.Store
	calls, most atomic.Int64
}

func (s *sparse) Take(ctx context.Context, lanes []outbox.Lane, busy []int64, paused []string, limit int) ([]outbox.Taken, error) {
	if s.calls.Add(1) > 1 {
		s.most.Store(max(s.most.Load(), int64(limit)))
	}
	return s.Store.Take(ctx, lanes, busy, paused, limit)
}

// The destination has taken all messages of a Take before the next one, so that nothing is
// under way. The next Take may return messages of one topic only, and they are not more than its
// places.
func TestPublisher_LargeMessagesAreSentSoon_BytesAreBounded(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		m, sink := outboxtest.NewMemory(), &batches{done: make(chan struct{}), all: 600}
		tx := m.Begin()
		body := make([]byte, 4<<20)
		for n := range sink.all {
			_ = tx.Put(t.Context(), outbox.Message{Topic: "large", ID: fmt.Sprint(n), Body: body})
		}
		_ = tx.Commit()
		st := &sparse{Store: m}
		start(t, st, sink, nil)
		<-sink.done
		if n := st.most.Load(); n > 16 {
			t.Errorf("a Take may return %d messages of 4 MiB, want 16", n)
		}
	})
}

// After small messages the publisher reads 256 messages of 4 MiB at once, and the destination
// hangs. It gets those for which there are places, and another topic does not wait for them.
func TestPublisher_LargeMessagesAfterSmallOnesHang_OtherTopicGoesOn(t *testing.T) {
	for name, c := range map[string]struct {
		opt  outbox.Options
		most int64 // MiB
	}{
		"the defaults":                       {outbox.Options{}, 80},
		"one has more places than there are": {outbox.Options{Batch: 2, InFlight: 3}, 8},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				m, works := outboxtest.NewMemory(), make(chan time.Time, 1)
				tx := m.Begin()
				body := make([]byte, 4<<20)
				for n := range 1000 {
					message := outbox.Message{Topic: "large", ID: fmt.Sprint(n)}
					if n >= 500 {
						message.Body = body
					}
					_ = tx.Put(t.Context(), message)
				}
				_ = tx.Put(t.Context(), outbox.Message{Topic: "works", ID: "w"})
				_ = tx.Commit()
				var bytes atomic.Int64
				began := time.Now()
				start(t, m, hanging(works, func(m *outbox.Message) bool {
					bytes.Add(int64(len(m.Body)))
					return len(m.Body) > 0
				}), &c.opt)
				if took := (<-works).Sub(began); took > 5*time.Second || bytes.Load()>>20 > c.most {
					t.Errorf("the message of the topic that works waited %v, and %d MiB hang; want at most %d", took, bytes.Load()>>20, c.most)
				}
			})
		})
	}
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
