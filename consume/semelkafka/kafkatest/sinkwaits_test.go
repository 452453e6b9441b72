package kafkatest

import (
	"context"
	"fmt"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/semel-go/semel/consume/semelkafka"
	"github.com/semel-go/semel/outbox"
	"github.com/semel-go/semel/outbox/outboxtest"
	"github.com/twmb/franz-go/pkg/kerr"
	"github.com/twmb/franz-go/pkg/kfake"
	"github.com/twmb/franz-go/pkg/kgo"
	"github.com/twmb/franz-go/pkg/kmsg"
)

// One partition is away. Small messages of another one are sent, so that MaxAttempts counts, and
// its large messages must not use up their attempts while they wait for large messages of the
// first partition.
func TestSink_LargeMessagesOfPartitionThatIsAway_OthersAreNotQuarantined(t *testing.T) {
	t.Parallel()
	c, seed := fake(t)
	b := open(t, seed, "max.message.bytes", "8388608")
	sink, err := semelkafka.NewSink(client(t, seed, kgo.ProducerLinger(0), kgo.RecordDeliveryTimeout(time.Second)))
	if err != nil {
		t.Fatal(err)
	}
	c.Fault(kfake.Fault{Keys: []kmsg.Key{kmsg.Produce}, Topic: b.name, Partitions: []int32{1}, Err: kerr.NotEnoughReplicas, Count: -1})
	partitioner := kgo.StickyKeyPartitioner(nil).ForTopic(b.name)
	m := outboxtest.NewMemory()
	put := func(id string, partition, size int) {
		key := id
		for partitioner.Partition(&kgo.Record{Key: []byte(key)}, partitions) != partition {
			key += "+"
		}
		if err := m.Put(t.Context(), outbox.Message{Topic: b.name, ID: id, OrderKey: key, Body: noise(size)}); err != nil {
			t.Error(err)
		}
	}
	for n := range 20 {
		put(fmt.Sprint("away-", n), 1, 2<<20)
		put(fmt.Sprint("works-", n), 0, 2<<20)
	}
	var mu sync.Mutex
	sent, wrong := 0, []string(nil)
	p, err := outbox.New(m, sink, &outbox.Options{MaxAttempts: 3, Drain: time.Second, Backoff: func(int) time.Duration { return 100 * time.Millisecond }, Observe: func(_ context.Context, e outbox.Event) {
		mu.Lock()
		defer mu.Unlock()
		switch {
		case e.Entry == nil || !strings.HasPrefix(e.Entry.ID, "works"):
		case e.Kind == outbox.EventSent:
			sent++
		case e.Kind == outbox.EventQuarantined:
			wrong = append(wrong, fmt.Sprint(e.Entry.ID, ": ", e.Err))
		}
	}})
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(t.Context())
	done := make(chan error, 1)
	go func() { done <- p.Run(ctx) }()
	for n := range 50 {
		put(fmt.Sprint("small-", n), 0, 1)
		<-time.After(100 * time.Millisecond)
	}
	cancel()
	if err := <-done; err != nil {
		t.Error(err)
	}
	mu.Lock()
	defer mu.Unlock()
	if sent != 20 || len(wrong) > 0 {
		t.Errorf("of 20 large messages of a partition that works %d are sent, and in the quarantine are %q", sent, wrong)
	}
}
