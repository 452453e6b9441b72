package semelpulsar_test

import (
	"context"
	"encoding/json"
	"flag"
	"fmt"
	"os"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/apache/pulsar-client-go/pulsar"
	"github.com/apache/pulsar-client-go/pulsar/log"
	"github.com/semel-go/semel/consume"
	"github.com/semel-go/semel/consume/driver"
	"github.com/semel-go/semel/consume/semelpulsar"
	"github.com/semel-go/semel/consume/semelpulsar/pulsartest"
)

// patience is how long a test waits for an event, on a busy machine.
const patience = 5 * time.Minute

func TestMain(m *testing.M) {
	flag.Parse()
	// The tests wait for the broker most of the time, so that more of them run at once
	// than there are cores.
	if err := flag.Set("test.parallel", "16"); err != nil {
		panic(err)
	}
	os.Exit(pulsartest.Main(m))
}

const orderHeader = "order-key"

// byHeader is the order key of the tests.
func byHeader(m *consume.Message, _ string) string {
	key, _ := m.Header(orderHeader)
	return key
}

var (
	topics  atomic.Int64
	members atomic.Int64
)

// broker is a topic with its topics of copies.
type broker struct {
	server *pulsartest.Server
	client pulsar.Client // for all but the members
	topic  string
	opt    semelpulsar.Options

	mu       sync.Mutex
	producer pulsar.Producer
	readers  map[driver.Action]pulsar.Reader
	seen     map[driver.Action][]consume.Message
}

const group = "group"

// open makes a new topic on the shared server.
func open(t testing.TB, kind pulsar.SubscriptionType) *broker {
	t.Helper()
	return openOn(t, pulsartest.Shared(t), kind)
}

func openOn(t testing.TB, server *pulsartest.Server, kind pulsar.SubscriptionType) *broker {
	t.Helper()
	b := &broker{
		server: server, topic: fmt.Sprint("t", topics.Add(1)), opt: semelpulsar.Options{Type: kind, OrderKey: byHeader},
		readers: map[driver.Action]pulsar.Reader{}, seen: map[driver.Action][]consume.Message{},
	}
	b.client = newClient(t, pulsar.ClientOptions{URL: server.URL()})
	t.Cleanup(b.client.Close)
	return b
}

func newClient(t testing.TB, o pulsar.ClientOptions) pulsar.Client {
	t.Helper()
	o.Logger = log.DefaultNopLogger()
	c, err := pulsar.NewClient(o)
	if err != nil {
		t.Fatal(err)
	}
	return c
}

// source is a Source of the topic on a client of the test's.
func (b *broker) source(t testing.TB, client pulsar.Client) *semelpulsar.Source {
	t.Helper()
	s, err := semelpulsar.New(client, b.topic, group, &b.opt)
	if err != nil {
		t.Fatal(err)
	}
	return s
}

// Publish implements consumetest.Broker.
func (b *broker) Publish(t testing.TB, ms ...consume.Message) {
	t.Helper()
	b.mu.Lock()
	defer b.mu.Unlock()
	if b.producer == nil {
		var err error
		if b.producer, err = b.client.CreateProducer(pulsar.ProducerOptions{Topic: b.topic, DisableBatching: true}); err != nil {
			t.Fatal(err)
		}
	}
	send(t, b.producer, ms...)
}

// send sends messages in their order.
func send(t testing.TB, p pulsar.Producer, ms ...consume.Message) {
	t.Helper()
	results := make(chan error, len(ms))
	for i := range ms {
		p.SendAsync(context.Background(), producerMessage(&ms[i]), func(_ pulsar.MessageID, _ *pulsar.ProducerMessage, err error) { results <- err })
	}
	for range ms {
		if err := <-results; err != nil {
			t.Fatal(err)
		}
	}
}

func producerMessage(m *consume.Message) *pulsar.ProducerMessage {
	out := &pulsar.ProducerMessage{Payload: m.Body, Key: m.OrderKey, Properties: map[string]string{}}
	for _, h := range m.Headers {
		out.Properties[h.Name] = h.Value
	}
	if m.OrderKey != "" {
		out.Properties[orderHeader] = m.OrderKey
	}
	return out
}

// copyTopics are the defaults of the options.
var copyTopics = map[driver.Action]string{driver.DeadLetter: "-" + group + "-DLQ", driver.Quarantine: "-" + group + "-quarantine"}

// Copies implements consumetest.Broker.
func (b *broker) Copies(t testing.TB, to driver.Action) []consume.Message {
	t.Helper()
	b.mu.Lock()
	defer b.mu.Unlock()
	r := b.readers[to]
	if r == nil {
		var err error
		if r, err = b.client.CreateReader(pulsar.ReaderOptions{Topic: b.topic + copyTopics[to], StartMessageID: pulsar.EarliestMessageID()}); err != nil {
			t.Fatal(err)
		}
		b.readers[to] = r
	}
	for r.HasNext() {
		m, err := r.Next(context.Background())
		if err != nil {
			t.Fatal(err)
		}
		b.seen[to] = append(b.seen[to], *semelpulsar.Decode(m))
	}
	return append([]consume.Message(nil), b.seen[to]...)
}

// Unsettled implements consumetest.Broker.
func (b *broker) Unsettled(t testing.TB) int {
	t.Helper()
	n := 0
	for _, stats := range b.stats(t) {
		n += stats.Backlog
	}
	return n
}

// State implements consumetest.Stater.
func (b *broker) State(t testing.TB) string {
	t.Helper()
	text, err := b.server.Request("GET", "/persistent/public/default/"+b.topic+"/stats?getPreciseBacklog=true", "")
	if err != nil {
		return err.Error()
	}
	return text
}

// stats are the broker's figures of the subscription, by the topic or its partitions.
func (b *broker) stats(t testing.TB) map[string]subscriptionStats {
	t.Helper()
	partitions, err := b.client.TopicPartitions(b.topic)
	if err != nil {
		t.Fatal(err)
	}
	all := map[string]subscriptionStats{}
	for _, p := range partitions {
		name := p[strings.LastIndexByte(p, '/')+1:]
		all[name] = subscriptionStats{Backlog: 1} // unless a member has subscribed
		text, err := b.server.Request("GET", "/persistent/public/default/"+name+"/stats?getPreciseBacklog=true", "")
		if err != nil && strings.Contains(err.Error(), "404") {
			continue
		}
		if err != nil {
			t.Fatal(err)
		}
		var answer struct {
			Subscriptions map[string]subscriptionStats `json:"subscriptions"`
		}
		if err := json.Unmarshal([]byte(text), &answer); err != nil {
			t.Fatal(err)
		}
		if stats, ok := answer.Subscriptions[group]; ok {
			all[name] = stats
		}
	}
	return all
}

type subscriptionStats struct {
	Backlog   int        `json:"msgBacklog"` // in entries
	Consumers []struct{} `json:"consumers"`
}

func until(t testing.TB, what string, ready func() bool) {
	t.Helper()
	for end := time.Now().Add(patience); !ready(); <-time.After(10 * time.Millisecond) {
		if time.Now().After(end) {
			t.Fatalf("after %v: not %s", patience, what)
		}
	}
}
