package kafkatest

import (
	"context"
	"errors"
	"fmt"
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
func away(t *testing.T, down []int32, limit time.Duration, configs ...string) (outbox.Sink, *kgo.Client, *broker) {
	t.Helper()
	c, seed := fake(t)
	b := open(t, seed, configs...)
	cl := client(t, seed, kgo.ProducerLinger(0), kgo.RecordDeliveryTimeout(limit))
	sink, err := semelkafka.NewSink(cl)
	if err != nil {
		t.Fatal(err)
	}
	c.Fault(kfake.Fault{Keys: []kmsg.Key{kmsg.Produce}, Topic: b.name, Partitions: down, Err: kerr.NotEnoughReplicas, Count: -1})
	return sink, cl, b
}

// publishes sends a message of a partition, and returns its answer.
func publishes(t *testing.T, sink outbox.Sink, b *broker, id string, partition, size int) <-chan error {
	t.Helper()
	key := id
	for kgo.StickyKeyPartitioner(nil).ForTopic(b.name).Partition(&kgo.Record{Key: []byte(key)}, partitions) != partition {
		key += "+"
	}
	answer := make(chan error, 1)
	go sink.Publish(t.Context(), []outbox.Message{{Topic: b.name, ID: id, OrderKey: key, Body: noise(size)}}, func(_ int, err error) { answer <- err })
	return answer
}

// endsWithClient checks that a message of the partition that is away has had no answer, until
// its client is closed.
func endsWithClient(t *testing.T, missing <-chan error, cl *kgo.Client) {
	t.Helper()
	select {
	case err := <-missing:
		t.Errorf("the message of the partition that is away has an answer before the others: %v", err)
	default:
		cl.Close()
		if err := <-missing; err == nil || outbox.IsPoison(err) {
			t.Errorf("the message of the partition that is away: %v", err)
		}
	}
}

// A message that is too large for the topic comes for a partition that works, and so does a
// message after it. Both must not wait for a message of the partition that is away.
func TestSink_MessageTooLargeWhileOnePartitionIsAway_OtherPartitionsGoOn(t *testing.T) {
	t.Parallel()
	sink, cl, b := away(t, []int32{1}, 20*time.Second)
	if err := <-publishes(t, sink, b, "first", 0, 1); err != nil {
		t.Fatal(err)
	}
	missing := publishes(t, sink, b, "missing", 1, 1)
	until(t, "sending", func() bool { return cl.BufferedProduceRecords() == 1 })
	large, small := publishes(t, sink, b, "large", 0, 4<<20), publishes(t, sink, b, "small", 0, 1)
	if err := <-small; err != nil {
		t.Errorf("the small message: %v", err)
	}
	if err := <-large; !outbox.IsPoison(err) {
		t.Errorf("the large message: %v, want poison", err)
	}
	endsWithClient(t, missing, cl)
}

// Large messages of a partition that works must not wait for one of the partition that is
// away: each of them would fail, and in the end go to the quarantine.
func TestSink_LargeMessagesWhileOnePartitionIsAway_OtherPartitionsGoOn(t *testing.T) {
	t.Parallel()
	sink, cl, b := away(t, []int32{1}, 20*time.Second, "max.message.bytes", "8388608")
	missing := publishes(t, sink, b, "missing", 1, 2<<20)
	for n := range 20 { // one of the first may come before the missing one
		if err := <-publishes(t, sink, b, fmt.Sprint("works-", n), 0, 2<<20); err != nil {
			t.Fatalf("message %d of a partition that works: %v", n, err)
		}
	}
	endsWithClient(t, missing, cl)
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
// of the outage, and other topics get places. One after the other they would take 64 times
// as long.
func TestSink_LargeMessagesOfTopicThatIsAway_FailTogether(t *testing.T) {
	t.Parallel()
	const limit = time.Second
	sink, _, b := away(t, nil, limit)
	answers := make([]<-chan error, 64)
	began := time.Now()
	for n := range answers {
		answers[n] = publishes(t, sink, b, fmt.Sprint(n), 0, 1<<20)
	}
	for n, answer := range answers {
		if err := <-answer; err == nil || outbox.IsPoison(err) {
			t.Fatalf("message %d: error %v, want one that is no poison", n, err)
		}
		if took := time.Since(began); took > 20*limit {
			t.Fatalf("%d messages took %v to fail, and one takes %v", n+1, took, limit)
		}
	}
}
