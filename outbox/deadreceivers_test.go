package outbox_test

import (
	"context"
	"fmt"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/semel-go/semel/outbox"
	"github.com/semel-go/semel/outbox/outboxtest"
)

// 300 receivers of webhooks are down. Each has an order key of its own, and all have one topic.
// After a time without other messages the publisher counts an outage of the topic.
func TestPublisher_ManyReceiversAreDown_OthersOfTopicGoOn(t *testing.T) {
	for _, timeout := range []time.Duration{0, 10 * time.Second} {
		t.Run(timeout.String(), func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				m := outboxtest.NewMemory()
				put := func(key string) {
					if err := m.Put(t.Context(), outbox.Message{Topic: "webhook", OrderKey: key, ID: key}); err != nil {
						t.Fatal(err)
					}
				}
				var mu sync.Mutex
				sent := map[string]time.Time{}
				sink := &outboxtest.Sink{Fail: func(_ context.Context, m *outbox.Message) error {
					if strings.HasPrefix(m.OrderKey, "dead") {
						time.Sleep(timeout)
						return errDown
					}
					mu.Lock()
					defer mu.Unlock()
					sent[m.ID] = time.Now()
					return nil
				}}
				for n := range 300 {
					put(fmt.Sprint("dead", n))
				}
				start(t, m, sink, nil)
				time.Sleep(10 * time.Minute)
				written := map[string]time.Time{}
				for n := range 20 {
					id := fmt.Sprint("good", n)
					put(id)
					written[id] = time.Now()
					time.Sleep(time.Second)
				}
				time.Sleep(time.Minute)
				mu.Lock()
				defer mu.Unlock()
				for id, began := range written {
					// A probe, and the pause after it.
					if took, most := sent[id].Sub(began), timeout+6*time.Second; took < 0 || took > most {
						t.Errorf("%s to a receiver that works was sent %v after Put, want at most %v", id, took, most)
					}
				}
			})
		})
	}
}
