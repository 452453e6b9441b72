package outbox_test

import (
	"context"
	"fmt"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/semel-go/semel/outbox"
	"github.com/semel-go/semel/outbox/outboxtest"
)

// slow is a store whose Take lasts 2 s, as after a long backlog of a paused topic.
type slow struct{ outbox.Store }

func (s slow) Take(ctx context.Context, lanes []outbox.Lane, busy []int64, paused []string, limit int) ([]outbox.Taken, error) {
	time.Sleep(2 * time.Second)
	return s.Store.Take(ctx, lanes, busy, paused, limit)
}

// The longest pause of a topic is 5 s. A Take that found nothing meanwhile must not make it longer.
func TestPublisher_TakeIsSlowDuringOutage_TopicIsTriedAfterItsPause(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		m := outboxtest.NewMemory()
		var mu sync.Mutex
		var last time.Time
		var longest time.Duration
		sink := &outboxtest.Sink{Fail: func(context.Context, *outbox.Message) error {
			mu.Lock()
			defer mu.Unlock()
			if now := time.Now(); !last.IsZero() {
				longest = max(longest, now.Sub(last))
			}
			last = time.Now()
			return errDown
		}}
		for n := range 40 {
			if err := m.Put(t.Context(), outbox.Message{Topic: "missing", ID: fmt.Sprint(n)}); err != nil {
				t.Fatal(err)
			}
		}
		start(t, slow{m}, sink, &outbox.Options{Lease: 10 * time.Minute, Backoff: func(int) time.Duration { return time.Second }})
		time.Sleep(3 * time.Minute)
		mu.Lock()
		defer mu.Unlock()
		if longest > 10*time.Second {
			t.Errorf("the topic was not tried for %v; its longest pause is 5 s, and a Take lasts 2 s", longest)
		}
	})
}
