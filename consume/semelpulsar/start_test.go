package semelpulsar

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/apache/pulsar-client-go/pulsar"
	"github.com/semel-go/semel/consume/driver"
	"github.com/semel-go/semel/store"
)

// Pulsar deletes a message of a topic without a subscription.
func TestInfo_Copies_HaveASubscription(t *testing.T) {
	t.Parallel()
	_, client := subscribed(t, Options{CopySubscription: "operators"})
	kept := map[string]bool{}
	for _, c := range client.consumers {
		if c.opt.SubscriptionName == "operators" {
			kept[c.opt.Topic] = c.opt.SubscriptionInitialPosition == pulsar.SubscriptionPositionEarliest && c.isClosed()
		}
	}
	for _, p := range client.producers {
		if !kept[p.opt.Topic] {
			t.Errorf("the copies in %s are not kept", p.opt.Topic)
		}
	}
	if len(client.producers) != 2 {
		t.Errorf("%d producers, want 2", len(client.producers))
	}
}

func TestInfo_Subscription_IsAnswered(t *testing.T) {
	t.Parallel()
	s, client := subscribed(t, Options{Type: pulsar.KeyShared, ReceiverQueue: 7, Name: "one"})
	o := client.last().opt
	if !o.AckWithResponse || !o.EnableBatchIndexAcknowledgment || o.ReceiverQueueSize != 7 || cap(o.MessageChannel) != 7 || o.Type != pulsar.KeyShared ||
		o.Name != "one" || o.SubscriptionInitialPosition != pulsar.SubscriptionPositionEarliest || o.DLQ != nil || o.RetryEnable || o.Schema != nil {
		t.Errorf("the subscription's options are %+v", o)
	}
	if i, err := s.Info(t.Context()); err != nil || i != (driver.Info{Horizon: driver.Forever}) {
		t.Errorf("Info: %+v, %v", i, err)
	}
	exclusive, _ := subscribed(t, Options{Horizon: time.Hour})
	if i, err := exclusive.Info(t.Context()); err != nil || i != (driver.Info{Horizon: time.Hour, HoldsOnly: true}) {
		t.Errorf("Info of an exclusive subscription: %+v, %v", i, err)
	}
}

func TestInfo_ContextEnds_Returns(t *testing.T) {
	t.Parallel()
	s, err := New(&fakeClient{}, "orders", "billing", nil)
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if _, err := s.Info(ctx); err != nil && !errors.Is(err, context.Canceled) {
		t.Errorf("Info: %v", err)
	}
}

func TestForward_Copy_HasKeysAndHeaders(t *testing.T) {
	t.Parallel()
	s, client := subscribed(t, Options{Type: pulsar.Shared})
	m := entryMessage(1, 0)
	m.key, m.orderingKey = "k", "o"
	client.last().send(m)
	d := take(t, s, 1)[0]
	headers := []store.Header{{Name: driver.LetterReason, Value: "failed"}}
	if err := errors.Join(d.Forward(t.Context(), driver.DeadLetter, headers), d.Forward(t.Context(), driver.Quarantine, headers)); err != nil {
		t.Fatal(err)
	}
	for _, p := range client.producers {
		if len(p.sent) != 1 {
			t.Fatalf("%d copies in %s, want 1", len(p.sent), p.opt.Topic)
		}
		c := p.sent[0]
		if string(c.Payload) != "body" || c.Key != "k" || c.OrderingKey != "o" || !c.EventTime.Equal(time.UnixMilli(500)) || c.Properties[driver.LetterReason] != "failed" || c.Schema != nil {
			t.Errorf("the copy is %+v", c)
		}
	}
}

// Somebody deletes the subscription that keeps the copies, after the start. Forward makes it
// again, or fails.
func TestForward_SubscriptionDeleted_IsMadeAgain(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		s, client := subscribed(t, Options{Type: pulsar.Shared})
		defer func() {
			s.link.Load().abandon()
			synctest.Wait()
		}()
		made := func() (n int) {
			for _, c := range client.consumers {
				if c.opt.Topic == s.opt.DeadLetters && c.opt.SubscriptionName == "semel" && c.opt.EnableZeroQueueConsumer && c.isClosed() {
					n++
				}
			}
			return n
		}
		client.last().send(entryMessage(1, 0))
		d := take(t, s, 1)[0]
		before := made()
		for range 2 { // the second one within the time of the first answer
			if err := d.Forward(t.Context(), driver.DeadLetter, nil); err != nil {
				t.Fatal(err)
			}
		}
		if n := made() - before; n != 1 {
			t.Errorf("the subscription was made %d times, want once", n)
		}
		time.Sleep(driver.CopyCheckEach)
		client.refuse = map[string]error{s.opt.DeadLetters: errors.New("server error: AuthorizationError")}
		if err := d.Forward(t.Context(), driver.DeadLetter, nil); err == nil || !strings.Contains(err.Error(), "grant-permission") {
			t.Errorf("Forward: %v, want an error that says what to do", err)
		}
		for _, p := range client.producers {
			if p.opt.Topic == s.opt.DeadLetters && len(p.sent) != 2 {
				t.Errorf("%d copies were sent, want 2", len(p.sent))
			}
		}
	})
}

func TestNext_Message_HasItsParts(t *testing.T) {
	t.Parallel()
	brokerTime := time.UnixMilli(2000)
	for kind, want := range map[pulsar.SubscriptionType]string{
		pulsar.Exclusive: "partition 3, 0 deliveries", pulsar.Failover: "partition 3, 0 deliveries", pulsar.Shared: ", 3 deliveries", pulsar.KeyShared: "o, 3 deliveries",
	} {
		s, client := subscribed(t, Options{Type: kind})
		in := fakeMessage{id: fakeID{entry: 1, index: 4, partition: 3}, key: "k", orderingKey: "o", properties: map[string]string{"b": "2", "a": "1"}, brokerTime: &brokerTime}
		client.last().send(in)
		m := take(t, s, 1)[0].Message()
		if got := fmt.Sprintf("%s, %d deliveries", m.OrderKey, m.Deliveries); got != want {
			t.Errorf("type %d: %s, want %s", kind, got, want)
		}
		if m.Origin != (driver.Origin{Topic: "persistent://public/default/orders", Partition: 3, Offset: 1, ID: "7:1:4"}) || !m.Published.Equal(brokerTime) || string(m.RecordKey) != "k" ||
			!slices.Equal(m.Headers, []store.Header{{Name: "a", Value: "1"}, {Name: "b", Value: "2"}}) {
			t.Errorf("the message is %+v", m)
		}
	}
	in := entryMessage(1, 0)
	in.key = "k"
	if m := Decode(in); m.OrderKey != "k" || m.Origin.Topic != "persistent://public/default/orders" || !m.Published.Equal(time.UnixMilli(1000)) {
		t.Errorf("Decode: %+v", m)
	}
}

// Latest is for a new subscription. The messages of a partition that is added later are all new.
func TestNext_LatestAndPartitionAdded_BeginsAtItsFirstMessage(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s, client := subscribed(t, Options{Type: pulsar.Shared, Latest: true})
		old := client.last()
		if old.opt.SubscriptionInitialPosition != pulsar.SubscriptionPositionLatest {
			t.Error("the subscription does not begin after the newest message")
		}
		const topic = "persistent://public/default/orders"
		client.partitions = []string{topic + "-partition-0", topic + "-partition-1"}
		busy(t, s, client, func(error) bool { return s.link.Load().consumer != old })
		if now := client.last(); now == old || now.opt.SubscriptionInitialPosition != pulsar.SubscriptionPositionEarliest {
			t.Error("the new partition is not read from its first message")
		}
		// Serve begins again. The subscription may have been deleted meanwhile.
		if _, err := s.Info(t.Context()); err != nil {
			t.Fatal(err)
		}
		if client.last().opt.SubscriptionInitialPosition != pulsar.SubscriptionPositionLatest {
			t.Error("a subscription that is new again does not begin after the newest message")
		}
		s.link.Load().abandon()
	})
}
