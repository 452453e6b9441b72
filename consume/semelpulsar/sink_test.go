package semelpulsar_test

import (
	"context"
	"fmt"
	"testing"
	"time"

	"github.com/apache/pulsar-client-go/pulsar"

	"github.com/semel-go/semel/consume/semelpulsar"
	"github.com/semel-go/semel/outbox"
	"github.com/semel-go/semel/outbox/outboxtest"
)

// openSink is a sink, and the messages of its topic.
func openSink(t *testing.T, b *broker, client pulsar.Client) (*semelpulsar.Sink, func(t testing.TB, n int) []outboxtest.Arrived) {
	t.Helper()
	// In a key-shared subscription, so that the test sees the order that such members see.
	c, err := b.client.Subscribe(pulsar.ConsumerOptions{Topic: b.topic, SubscriptionName: group, Type: pulsar.KeyShared, SubscriptionInitialPosition: pulsar.SubscriptionPositionEarliest})
	if err != nil {
		t.Fatal(err)
	}
	sink, err := semelpulsar.NewSink(client)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = sink.Close() })
	return sink, func(t testing.TB, n int) (all []outboxtest.Arrived) {
		ctx, cancel := context.WithTimeout(context.Background(), patience)
		defer cancel()
		for len(all) < n {
			raw, err := c.Receive(ctx)
			if err != nil {
				t.Fatalf("after %d messages: %v", len(all), err)
			}
			if err := c.Ack(raw); err != nil {
				t.Fatal(err)
			}
			m := semelpulsar.Decode(raw)
			all = append(all, outboxtest.Arrived{OrderKey: m.OrderKey, Headers: m.Headers, Body: m.Body})
		}
		return all
	}
}

// The broker takes messages of up to 5 MiB, and the topic may have partitions.
func TestSink_Messages_ArriveInOrderForEachKey(t *testing.T) {
	t.Parallel()
	for name, partitions := range map[string]string{"one": "", "partitions": "3"} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			b := open(t, pulsar.KeyShared)
			if partitions != "" {
				if _, err := b.server.Request("PUT", "/persistent/public/default/"+b.topic+"/partitions", partitions); err != nil {
					t.Fatal(err)
				}
			}
			sink, arrived := openSink(t, b, b.client)
			outboxtest.RunSink(t, outboxtest.Destination{Sink: sink, Topic: b.topic, Arrived: arrived, TooLarge: 5<<20 + 1})
		})
	}
}

// The connection is cut while messages are sent: the client sends those again that have no
// answer, and the order of each key is kept.
func TestSink_ConnectionCut_FirstCopiesAreInOrder(t *testing.T) {
	t.Parallel()
	b := open(t, pulsar.KeyShared)
	m := b.member(t)
	sink, arrived := openSink(t, b, m.client)
	const keys, each = 5, 40
	var messages []outbox.Message
	for n := range each {
		for k := range keys {
			messages = append(messages, outbox.Message{Topic: b.topic, OrderKey: fmt.Sprint("key", k), ID: fmt.Sprintf("%d-%d", k, n)})
		}
	}
	answers := make(chan error, len(messages))
	go func() {
		sink.Publish(t.Context(), messages, func(_ int, err error) { answers <- err })
		close(answers)
	}()
	sent := 0
	for err := range answers {
		if err != nil {
			t.Fatal(err)
		}
		if sent++; sent%70 == 30 {
			m.cut(false)
		}
	}
	next := map[string]int{}
	for count := 0; count < sent; {
		a := arrived(t, 1)[0]
		switch id := fmt.Sprintf("%s-%d", a.OrderKey[len("key"):], next[a.OrderKey]); {
		case a.ID() == id:
			next[a.OrderKey]++
			count++
		case a.ID() > id && len(a.ID()) >= len(id):
			t.Fatalf("%s has arrived before %s", a.ID(), id)
		}
	}
}

// A topic that nobody creates holds up its own messages, until somebody does. The client
// gives up a producer whose topic was deleted.
func TestSink_TopicMissingOrDeleted_ErrorNamesCommandAndLaterSends(t *testing.T) {
	t.Parallel()
	b := open(t, pulsar.Shared)
	name := newNamespace(t, b) + "/orders"
	client := newClient(t, pulsar.ClientOptions{URL: b.server.URL(), OperationTimeout: 10 * time.Second})
	t.Cleanup(client.Close)
	sink, err := semelpulsar.NewSink(client)
	if err != nil {
		t.Fatal(err)
	}
	publish := func() (answered error) {
		sink.Publish(t.Context(), []outbox.Message{{Topic: name, ID: "1"}}, func(_ int, err error) { answered = err })
		return answered
	}
	for range 2 {
		err := publish()
		wants(t, err, "pulsar-admin topics create persistent://"+name)
		if outbox.IsPoison(err) {
			t.Errorf("the error is poison: %v", err)
		}
		if _, err := b.server.Request("PUT", "/persistent/"+name, ""); err != nil {
			t.Fatal(err)
		}
		if err := publish(); err != nil {
			t.Errorf("after the topic was created: %v", err)
		}
		if _, err := b.server.Request("DELETE", "/persistent/"+name+"?force=true", ""); err != nil {
			t.Fatal(err)
		}
		until(t, "the client gave the producer up", func() bool { return publish() != nil })
	}
}

func TestSink_BrokerIsAway_IsLater(t *testing.T) {
	t.Parallel()
	client := newClient(t, pulsar.ClientOptions{URL: "pulsar://127.0.0.1:1", OperationTimeout: 300 * time.Millisecond, ConnectionTimeout: 100 * time.Millisecond})
	t.Cleanup(client.Close)
	sink, err := semelpulsar.NewSink(client)
	if err != nil {
		t.Fatal(err)
	}
	sink.Publish(t.Context(), []outbox.Message{{Topic: "orders", ID: "1"}}, func(_ int, err error) {
		wants(t, err, "Pulsar gives no answer", "check the client's URL")
		if outbox.IsPoison(err) {
			t.Errorf("the error is poison: %v", err)
		}
	})
	if err := sink.Close(); err != nil {
		t.Error(err)
	}
}
