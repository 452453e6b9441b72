package semelpulsar_test

import (
	"context"
	"errors"
	"sync/atomic"
	"testing"
	"time"

	"github.com/apache/pulsar-client-go/pulsar"
	"github.com/semel-go/semel"
	"github.com/semel-go/semel/consume"
	"github.com/semel-go/semel/store/memstore"
)

// An operator deletes the subscription of the dead letters after the start of Serve, so that
// the broker would delete each letter at once.
func TestForward_SubscriptionOfCopiesDeleted_LetterIsKept(t *testing.T) {
	t.Parallel()
	b := open(t, pulsar.Shared)
	var settled atomic.Int64
	serve(t, consumer(t, memstore.New(nil), keyHeader, func(_ context.Context, _ *semel.Execution, m *consume.Message) error {
		if m.Key == "bad" {
			return semel.Final(errors.New("no"))
		}
		return nil
	}, consume.Options{Observe: func(_ context.Context, e consume.Event) {
		if e.Kind == consume.EventSettled {
			settled.Add(1)
		}
	}}), b.source(t, b.client))
	b.Publish(t, keyed("good"))
	until(t, "Serve has started", func() bool { return settled.Load() == 1 })
	letters := b.topic + "-" + group + "-DLQ"
	if _, err := b.server.Request("DELETE", "/persistent/public/default/"+letters+"/subscription/semel", ""); err != nil {
		t.Fatal(err)
	}
	b.Publish(t, keyed("bad"))
	until(t, "the message acked", func() bool { return settled.Load() == 2 })
	c, err := b.client.Subscribe(pulsar.ConsumerOptions{Topic: letters, SubscriptionName: "semel", Type: pulsar.Shared}) // from the newest, if it is new
	if err != nil {
		t.Fatal(err)
	}
	defer c.Close()
	ctx, cancel := context.WithTimeout(t.Context(), 20*time.Second)
	defer cancel()
	m, err := c.Receive(ctx)
	if err != nil {
		t.Fatal("the letter is lost:", err)
	}
	if m.RedeliveryCount() != 0 {
		t.Errorf("the letter was taken %d times before", m.RedeliveryCount())
	}
}

// A subscription begins after the newest message, and its topic gets another partition later.
// The messages that are published there before the Source subscribes to it are not skipped:
// the broker subscribes the group when the partition is added.
func TestServe_LatestAndPartitionAdded_LosesNothing(t *testing.T) {
	t.Parallel()
	for name, running := range map[string]bool{"a member runs": true, "no member runs": false} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			b := open(t, pulsar.Shared)
			b.opt.Latest = true
			path := "/persistent/public/default/" + b.topic + "/partitions"
			if _, err := b.server.Request("PUT", path, "1"); err != nil {
				t.Fatal(err)
			}
			b.Publish(t, keyed("before"))
			var h handled
			c := consumer(t, memstore.New(nil), keyHeader, func(_ context.Context, _ *semel.Execution, m *consume.Message) error {
				h.run(m)
				return nil
			}, consume.Options{})
			runs := func(key string) int {
				h.mu.Lock()
				defer h.mu.Unlock()
				return h.runs[key]
			}
			stop := serve(t, c, b.source(t, b.client))
			until(t, "Serve has started", func() bool {
				b.Publish(t, keyed("first"))
				<-time.After(50 * time.Millisecond)
				return runs("first") > 0
			})
			if !running {
				if err := stop(); err != nil {
					t.Fatal(err)
				}
			}
			if _, err := b.server.Request("POST", path, "2"); err != nil {
				t.Fatal(err)
			}
			p, err := b.client.CreateProducer(pulsar.ProducerOptions{Topic: b.topic + "-partition-1", DisableBatching: true})
			if err != nil {
				t.Fatal(err)
			}
			defer p.Close()
			send(t, p, keyed("added"))
			if !running {
				serve(t, c, b.source(t, b.client))
			}
			until(t, "a later message of the new partition", func() bool {
				send(t, p, keyed("after"))
				<-time.After(50 * time.Millisecond)
				return runs("after") > 0
			})
			if runs("added") != 1 || runs("before") != 0 {
				t.Errorf("the first message of the new partition runs %d times, and the one of before %d times; want 1 and 0", runs("added"), runs("before"))
			}
		})
	}
}
