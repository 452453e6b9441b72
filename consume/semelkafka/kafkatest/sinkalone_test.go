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
// A record may take so long. The fault counts the requests that those partitions refuse.
func away(t *testing.T, down []int32, limit time.Duration, configs ...string) (outbox.Sink, *kgo.Client, *broker, *kfake.FaultHandle) {
	t.Helper()
	c, seed := fake(t)
	b := open(t, seed, configs...)
	cl := sinkClient(t, seed, kgo.RecordDeliveryTimeout(limit))
	sink, err := semelkafka.NewSink(cl)
	if err != nil {
		t.Fatal(err)
	}
	refused := c.Fault(kfake.Fault{Keys: []kmsg.Key{kmsg.Produce}, Topic: b.name, Partitions: down, Err: kerr.NotEnoughReplicas, Count: -1})
	return sink, cl, b, refused
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

// besideMissing checks that messages do not wait for a message of partition 1, which is
// away. publish sends them and returns nil if all have the answers that they should have. If
// the message of partition 1 ends before them, at its time limit, they have waited for it, or
// the machine is slow: a longer limit tells.
func besideMissing(t *testing.T, size int, publish func(sink outbox.Sink, b *broker) error, configs ...string) {
	t.Helper()
	var errs []error
	for _, limit := range []time.Duration{3 * time.Second, 22 * time.Second} {
		sink, cl, b, refused := away(t, []int32{1}, limit, configs...)
		missing := publishes(t, sink, b, "missing", 1, size)
		if err := refused.Wait(t.Context(), 1); err != nil { // from now on it is sent again and again
			t.Fatal(err)
		}
		err := publish(sink, b)
		select {
		case ended := <-missing:
			err = errors.Join(err, fmt.Errorf("the message of the partition that is away has an answer before the others: %w", ended))
		default:
		}
		if err == nil {
			cl.Close()
			if err := <-missing; err == nil || outbox.IsPoison(err) {
				t.Errorf("the message of the partition that is away: %v", err)
			}
			return
		}
		errs = append(errs, fmt.Errorf("with a time limit of %v: %w", limit, err))
	}
	t.Error(errors.Join(errs...))
}

// A message that is too large for the topic comes for a partition that works, and so does a
// message after it. Both must not wait for a message of the partition that is away.
func TestSink_MessageTooLargeWhileOnePartitionIsAway_OtherPartitionsGoOn(t *testing.T) {
	t.Parallel()
	besideMissing(t, 1, func(sink outbox.Sink, b *broker) (err error) {
		large, small := publishes(t, sink, b, "large", 0, 4<<20), publishes(t, sink, b, "small", 0, 1)
		if failed := <-small; failed != nil {
			err = fmt.Errorf("the small message: %w", failed)
		}
		if failed := <-large; !outbox.IsPoison(failed) {
			err = errors.Join(err, fmt.Errorf("the large message: %w, want poison", failed))
		}
		return err
	})
}

// Large messages of a partition that works must not wait for one of the partition that is
// away: each of them would fail, and in the end go to the quarantine.
func TestSink_LargeMessagesWhileOnePartitionIsAway_OtherPartitionsGoOn(t *testing.T) {
	t.Parallel()
	besideMissing(t, 2<<20, func(sink outbox.Sink, b *broker) error {
		for n := range 2 {
			if err := <-publishes(t, sink, b, fmt.Sprint("works-", n), 0, 2<<20); err != nil {
				return fmt.Errorf("message %d of a partition that works: %w", n, err)
			}
		}
		return nil
	}, "max.message.bytes", "8388608")
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
	sink, err := semelkafka.NewSink(sinkClient(t, seed))
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
	sink, _, b, _ := away(t, nil, limit)
	answers := make([]<-chan error, 64)
	for n := range answers {
		answers[n] = publishes(t, sink, b, fmt.Sprint(n), 0, 1<<20)
	}
	began := time.Now()
	for n, answer := range answers {
		if err := <-answer; err == nil || outbox.IsPoison(err) {
			t.Fatalf("message %d: error %v, want one that is no poison", n, err)
		}
		if took := time.Since(began); took > 20*limit {
			t.Fatalf("%d messages took %v to fail, and one takes %v", n+1, took, limit)
		}
	}
}
