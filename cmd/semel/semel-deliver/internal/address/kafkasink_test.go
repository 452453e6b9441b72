package address

import (
	"bytes"
	"crypto/rand"
	"fmt"
	"sync"
	"testing"

	"github.com/twmb/franz-go/pkg/kadm"
	"github.com/twmb/franz-go/pkg/kfake"
	"github.com/twmb/franz-go/pkg/kgo"

	"github.com/semel-go/semel/outbox"
)

// One topic takes messages of 3 MiB, another has the default. The broker decides about each
// message, and refuses no other one with it.
func TestKafkaSink_MessagesAreLarge_TopicDecidesAboutEach(t *testing.T) {
	cluster, err := kfake.NewCluster(kfake.NumBrokers(1))
	if err != nil {
		t.Fatal(err)
	}
	defer cluster.Close()
	addr := cluster.ListenAddrs()[0]
	client, err := kgo.NewClient(kgo.SeedBrokers(addr))
	if err != nil {
		t.Fatal(err)
	}
	defer client.Close()
	admin := kadm.NewClient(client)
	for topic, limit := range map[string]string{"large": "3145728", "small": "1048588"} {
		if _, err := admin.CreateTopic(t.Context(), 1, 1, map[string]*string{"max.message.bytes": &limit}, topic); err != nil {
			t.Fatal(err)
		}
	}
	to, err := ParseSink("kafka://"+addr, "--to", &SinkOptions{})
	if err != nil {
		t.Fatal(err)
	}
	sink, closeSink, err := to.Open(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	defer closeSink()
	var messages []outbox.Message
	random := make([]byte, 2<<20) // it must not become smaller by compression
	_, _ = rand.Read(random)
	for n := range 40 {
		body := random[:100<<10]
		if n%10 == 0 {
			body = random
		}
		for _, topic := range []string{"large", "small"} {
			messages = append(messages, outbox.Message{Topic: topic, OrderKey: fmt.Sprint(n), ID: fmt.Sprint(n), Body: bytes.Clone(body)})
		}
	}
	var mu sync.Mutex
	answers := 0
	sink.Publish(t.Context(), messages, func(i int, err error) {
		mu.Lock()
		defer mu.Unlock()
		answers++
		m := &messages[i]
		if refused := m.Topic == "small" && len(m.Body) > 1<<20; refused != outbox.IsPoison(err) || !refused && err != nil {
			t.Errorf("%d bytes to topic %s: %v", len(m.Body), m.Topic, err)
		}
	})
	if answers != len(messages) {
		t.Errorf("%d answers, want %d", answers, len(messages))
	}
}
