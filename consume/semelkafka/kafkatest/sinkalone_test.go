package kafkatest

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/semel-go/semel/consume/semelkafka"
	"github.com/semel-go/semel/outbox"
	"github.com/twmb/franz-go/pkg/kerr"
	"github.com/twmb/franz-go/pkg/kfake"
	"github.com/twmb/franz-go/pkg/kgo"
	"github.com/twmb/franz-go/pkg/kmsg"
)

// away is a sink, and a topic of which partitions have too few replicas in sync; nil: all.
// A record may take so long.
func away(t *testing.T, down []int32, limit time.Duration) (outbox.Sink, *kgo.Client, *broker) {
	t.Helper()
	c, seed := fake(t)
	b := open(t, seed)
	cl := client(t, seed, kgo.ProducerLinger(0), kgo.RecordDeliveryTimeout(limit))
	sink, err := semelkafka.NewSink(cl)
	if err != nil {
		t.Fatal(err)
	}
	c.Fault(kfake.Fault{Keys: []kmsg.Key{kmsg.Produce}, Topic: b.name, Partitions: down, Err: kerr.NotEnoughReplicas, Count: -1})
	return sink, cl, b
}

// A message that is too large for the topic comes for a partition that works, and so does a
// message after it. Both must not wait for a message of the partition that is away.
func TestSink_MessageTooLargeWhileOnePartitionIsAway_OtherPartitionsGoOn(t *testing.T) {
	t.Parallel()
	sink, cl, b := away(t, []int32{1}, 5*time.Second)
	keys := map[int32]string{}
	for n := 0; len(keys) < partitions; n++ {
		key := fmt.Sprint("k", n)
		at := kgo.StickyKeyPartitioner(nil).ForTopic(b.name).Partition(&kgo.Record{Key: []byte(key)}, partitions)
		keys[int32(at)] = key //nolint:gosec // small
	}
	publish := func(id string, partition int32, size int) <-chan error {
		answer := make(chan error, 1)
		go sink.Publish(t.Context(), []outbox.Message{{Topic: b.name, ID: id, OrderKey: keys[partition], Body: noise(size)}}, func(_ int, err error) { answer <- err })
		return answer
	}
	if err := <-publish("first", 0, 1); err != nil {
		t.Fatal(err)
	}
	missing := publish("missing", 1, 1)
	until(t, "sending", func() bool { return cl.BufferedProduceRecords() == 1 })
	began := time.Now()
	large, small := publish("large", 0, 4<<20), publish("small", 0, 1)
	if err := <-small; err != nil {
		t.Errorf("the small message: %v", err)
	}
	if err := <-large; !outbox.IsPoison(err) {
		t.Errorf("the large message: %v, want poison", err)
	}
	if took := time.Since(began); took > 3*time.Second {
		t.Errorf("messages of a partition that works took %v", took)
	}
	if err := <-missing; err == nil || outbox.IsPoison(err) {
		t.Errorf("the message of the partition that is away: %v", err)
	}
}

// thawed is the context of a publisher that freezes after it has begun to publish, past the
// end of its lease: no timer has run, so Done is not closed.
type thawed struct {
	context.Context
	looks atomic.Int64
}

func (c *thawed) Err() error {
	if c.looks.Add(1) > 1 {
		return context.DeadlineExceeded
	}
	return nil
}

func TestSink_LeaseIsOverBeforeMessageIsSentAlone_SendsNothing(t *testing.T) {
	t.Parallel()
	_, seed := fake(t)
	b := open(t, seed)
	sink, err := semelkafka.NewSink(client(t, seed, kgo.ProducerLinger(0)))
	if err != nil {
		t.Fatal(err)
	}
	sink.Publish(&thawed{Context: t.Context()}, []outbox.Message{{Topic: b.name, ID: "1", Body: make([]byte, 2<<20)}}, func(_ int, err error) {
		if !errors.Is(err, context.DeadlineExceeded) {
			t.Errorf("error %v", err)
		}
	})
	if rs := b.records(t, b.name); len(rs) != 0 {
		t.Errorf("%d messages have arrived", len(rs))
	}
}

// Messages that are sent alone fail in about the time of one, so that the publisher learns
// of the outage, and other topics get places.
func TestSink_LargeMessagesOfTopicThatIsAway_FailTogether(t *testing.T) {
	t.Parallel()
	const limit = 2 * time.Second
	sink, _, b := away(t, nil, limit)
	messages := make([]outbox.Message, 16)
	for n := range messages {
		messages[n] = outbox.Message{Topic: b.name, OrderKey: fmt.Sprint(n), ID: fmt.Sprint(n), Body: make([]byte, 2<<20)}
	}
	began := time.Now()
	var once sync.Once
	sink.Publish(t.Context(), messages, func(_ int, err error) {
		if err == nil || outbox.IsPoison(err) {
			once.Do(func() { t.Errorf("error %v, want one that is no poison", err) })
		}
	})
	if took := time.Since(began); took > 4*limit {
		t.Errorf("%d messages took %v to fail, and one takes %v", len(messages), took, limit)
	}
}
