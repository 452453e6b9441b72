package semelpulsar

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"sync"
	"testing"
	"time"

	"github.com/apache/pulsar-client-go/pulsar"
	"github.com/semel-go/semel/consume/driver"
)

// fakeClient is a client whose broker does as its test wants. A real one cannot be told to
// send a copy, or to refuse an ack.
type fakeClient struct {
	pulsar.Client
	mu         sync.Mutex
	consumers  []*fakeConsumer
	producers  []*fakeProducer
	refuse     map[string]error // by the topic
	partitions []string         // of the topic; nil: it has none
	gaveUp     string           // a partition that its consumer has lost
	onGaveUp   func()           // before a subscription of it; nil: nothing
}

func (c *fakeClient) TopicPartitions(topic string) ([]string, error) {
	if c.partitions == nil {
		return []string{topic}, nil
	}
	return c.partitions, nil
}

func (c *fakeClient) Subscribe(o pulsar.ConsumerOptions) (pulsar.Consumer, error) {
	if c.onGaveUp != nil && o.Topic == c.gaveUp {
		c.onGaveUp()
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	if err := c.refuse[o.Topic]; err != nil {
		return nil, err
	}
	if o.Type == pulsar.Exclusive {
		for _, earlier := range c.consumers {
			if earlier.opt.Topic == baseName(o.Topic) && o.Topic != c.gaveUp && !earlier.isClosed() {
				return nil, errors.New("server error: ConsumerBusy")
			}
		}
	}
	f := &fakeConsumer{opt: o, closed: make(chan struct{}), lastIDs: make([]pulsar.TopicMessageID, max(1, len(c.partitions)))}
	c.consumers = append(c.consumers, f)
	return f, nil
}

func (c *fakeClient) CreateProducer(o pulsar.ProducerOptions) (pulsar.Producer, error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if err := c.refuse[o.Topic]; err != nil {
		return nil, err
	}
	p := &fakeProducer{opt: o}
	c.producers = append(c.producers, p)
	return p, nil
}

// last is the consumer of the last subscription.
func (c *fakeClient) last() *fakeConsumer {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.consumers[len(c.consumers)-1]
}

type fakeProducer struct {
	pulsar.Producer
	opt  pulsar.ProducerOptions
	mu   sync.Mutex
	sent []*pulsar.ProducerMessage
	err  error // the answer to each message
	hang bool  // there is none while the context of the message lasts
}

func (p *fakeProducer) Send(ctx context.Context, m *pulsar.ProducerMessage) (pulsar.MessageID, error) {
	if p.hang {
		<-ctx.Done()
		return nil, ctx.Err()
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	p.sent = append(p.sent, m)
	return fakeID{}, p.err
}

func (p *fakeProducer) Close() {}

// fakeConsumer notes what is said to the broker.
type fakeConsumer struct {
	pulsar.Consumer
	opt       pulsar.ConsumerOptions
	closed    chan struct{}
	closeOnce sync.Once

	mu       sync.Mutex
	acked    [][]pulsar.MessageID // by request
	nacked   []pulsar.MessageID
	onAck    func(ids []pulsar.MessageID) error
	probed   int
	lastIDs  []pulsar.TopicMessageID // the answer to a probe
	probeErr error
	onProbe  func() // nil: nothing
}

// send delivers messages, as the client does when it receives them.
func (c *fakeConsumer) send(ms ...pulsar.Message) {
	for _, m := range ms {
		cm := pulsar.ConsumerMessage{Consumer: c, Message: m}
		c.opt.Interceptors.BeforeConsume(cm)
		select {
		case c.opt.MessageChannel <- cm:
		case <-c.closed:
		}
	}
}

func (c *fakeConsumer) Receive(ctx context.Context) (pulsar.Message, error) {
	select {
	case m := <-c.opt.MessageChannel:
		return m.Message, nil
	case <-c.closed:
		return nil, errors.New("consumer closed")
	case <-ctx.Done():
		return nil, ctx.Err()
	}
}

func (c *fakeConsumer) AckIDList(ids []pulsar.MessageID) error {
	c.mu.Lock()
	c.acked = append(c.acked, ids)
	onAck := c.onAck
	c.mu.Unlock()
	if onAck != nil {
		return onAck(ids)
	}
	return nil
}

func (c *fakeConsumer) NackID(id pulsar.MessageID) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.nacked = append(c.nacked, id)
}

func (c *fakeConsumer) GetLastMessageIDs() ([]pulsar.TopicMessageID, error) {
	if c.onProbe != nil {
		c.onProbe()
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	c.probed++
	return c.lastIDs, c.probeErr
}

func (c *fakeConsumer) probes() int {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.probed
}

func (c *fakeConsumer) Close() { c.closeOnce.Do(func() { close(c.closed) }) }

func (c *fakeConsumer) isClosed() bool {
	select {
	case <-c.closed:
		return true
	default:
		return false
	}
}

// sentBack are the entries that were sent back, in order.
func (c *fakeConsumer) sentBack() (entries []int64) {
	c.mu.Lock()
	defer c.mu.Unlock()
	for _, id := range c.nacked {
		entries = append(entries, id.EntryID())
	}
	slices.Sort(entries)
	return entries
}

// acks are the acked messages in the order of the requests, as text.
func (c *fakeConsumer) acks() (ids []string) {
	c.mu.Lock()
	defer c.mu.Unlock()
	for _, request := range c.acked {
		for _, id := range request {
			ids = append(ids, id.String())
		}
	}
	return ids
}

// fakeID is the ID of a copy of a message.
type fakeID struct {
	entry     int64
	index     int32
	partition int32
	copied    int // how often it was sent before
}

func (id fakeID) Serialize() []byte   { return nil }
func (id fakeID) LedgerID() int64     { return 7 }
func (id fakeID) EntryID() int64      { return id.entry }
func (id fakeID) BatchIdx() int32     { return id.index }
func (id fakeID) PartitionIdx() int32 { return id.partition }
func (id fakeID) BatchSize() int32    { return 10 }
func (id fakeID) String() string {
	return fmt.Sprintf("%d.%d copy %d", id.entry, id.index, id.copied)
}

type fakeMessage struct {
	pulsar.Message
	id               fakeID
	key, orderingKey string
	properties       map[string]string
	brokerTime       *time.Time
}

func (m fakeMessage) ID() pulsar.MessageID          { return m.id }
func (m fakeMessage) Payload() []byte               { return []byte("body") }
func (m fakeMessage) Properties() map[string]string { return m.properties }
func (m fakeMessage) Key() string                   { return m.key }
func (m fakeMessage) OrderingKey() string           { return m.orderingKey }
func (m fakeMessage) Topic() string                 { return "persistent://public/default/orders-partition-3" }
func (m fakeMessage) PublishTime() time.Time        { return time.UnixMilli(1000) }
func (m fakeMessage) EventTime() time.Time          { return time.UnixMilli(500) }
func (m fakeMessage) BrokerPublishTime() *time.Time { return m.brokerTime }
func (m fakeMessage) RedeliveryCount() uint32       { return 2 }

// entryMessage is the message at an index of an entry.
func entryMessage(entry int64, index int32) fakeMessage {
	return fakeMessage{id: fakeID{entry: entry, index: index}}
}

// copyOf is the same message, sent again.
func copyOf(m fakeMessage) fakeMessage {
	m.id.copied++
	return m
}

// subscribed is a Source on a fake client after Info.
func subscribed(t *testing.T, o Options) (*Source, *fakeClient) {
	t.Helper()
	client := &fakeClient{}
	s, err := New(client, "orders", "billing", &o)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := s.Info(t.Context()); err != nil {
		t.Fatal(err)
	}
	return s, client
}

// take is the deliveries of the next n messages.
func take(t *testing.T, s *Source, n int) (ds []driver.Delivery) {
	t.Helper()
	for end := time.Now().Add(time.Minute); len(ds) < n; {
		got, err := s.Next(t.Context(), n-len(ds))
		if err != nil || time.Now().After(end) {
			t.Fatalf("Next: %d messages of %d, %v", len(ds), n, err)
		}
		ds = append(ds, got...)
	}
	return ds
}

// none checks that no message is to be had.
func none(t *testing.T, s *Source) {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), 30*time.Millisecond)
	defer cancel()
	if ds, err := s.Next(ctx, 10); len(ds) > 0 {
		t.Errorf("Next returns %d messages, %v; want none", len(ds), err)
	}
}

func eventually(t *testing.T, what string, ready func() bool) {
	t.Helper()
	for end := time.Now().Add(time.Minute); !ready(); <-time.After(time.Millisecond) {
		if time.Now().After(end) {
			t.Fatalf("after a minute: not %s", what)
		}
	}
}
