package semelkafka

import (
	"cmp"
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/semel-go/semel"
	"github.com/semel-go/semel/consume"
	"github.com/semel-go/semel/outbox"
	"github.com/twmb/franz-go/pkg/kerr"
	"github.com/twmb/franz-go/pkg/kgo"
)

// Stamp sets the headers of consume.Stamp on a record that a handler produces:
// a key derived from the run's, the same for each attempt. Use a different step
// for each record that a handler produces. It returns r.
func Stamp(r *kgo.Record, x *semel.Execution, step string) *kgo.Record {
	for _, h := range consume.Stamp(x, step) {
		set(r, h.Name, h.Value)
	}
	return r
}

// Keyed sets the idempotency key of a record, such as the id of an event in the
// producer's outbox. It returns r.
func Keyed(r *kgo.Record, key string) *kgo.Record {
	set(r, consume.KeyHeader, key)
	return r
}

func set(r *kgo.Record, name, value string) {
	r.Headers = slices.DeleteFunc(r.Headers, func(h kgo.RecordHeader) bool { return strings.EqualFold(h.Key, name) })
	r.Headers = append(r.Headers, kgo.RecordHeader{Key: name, Value: []byte(value)})
}

// Stamper is a hook for a producer's client (kgo.WithHooks): it sets a new key
// on each produced record that has none. The same *kgo.Record produced again
// keeps its key, so that a producer can send it again if it does not know
// whether the record arrived.
type Stamper struct{}

var _ kgo.HookProduceRecordBuffered = Stamper{}

// OnProduceRecordBuffered implements kgo.HookProduceRecordBuffered.
func (Stamper) OnProduceRecordBuffered(r *kgo.Record) {
	if !slices.ContainsFunc(r.Headers, func(h kgo.RecordHeader) bool { return strings.EqualFold(h.Key, consume.KeyHeader) }) {
		set(r, consume.KeyHeader, rand.Text())
	}
}

// sink publishes the messages of an outbox.
type sink struct {
	client *kgo.Client
	topics sync.Map // *sync.RWMutex by topic: a message that is sent alone holds it, the others share it
}

// sinkTimeout limits the time for one message, because a client without
// kgo.RecordDeliveryTimeout tries for ever, and tells nobody why.
const sinkTimeout = 45 * time.Second

var errSinkTimeout = fmt.Errorf("not acknowledged within %v; see whether the partition has a leader and enough in-sync replicas with: kafka-topics --describe", sinkTimeout)

// NewSink makes a sink for an outbox.Publisher: it sends each message to the topic
// Message.Topic, with Message.OrderKey as the key of the record, and Message.ID as its
// idempotency key. Of one order key it sends the next message when all in-sync replicas
// have the one before, so give the client kgo.ProducerLinger(0). It must wait for all
// replicas (kgo.AllISRAcks, the default).
//
// A message that is not acknowledged within 45 s counts as failed, and may arrive all the same. With a shorter
// kgo.RecordDeliveryTimeout the error names the cause. Records of an order key keep their
// order while the topic keeps its number of partitions.
//
// A message whose topic's name is invalid is poison, and so is one that is too large. The
// broker refuses a whole batch, so the sink sends each of its messages again alone. That is
// slow: give the topic a max.message.bytes of the client's batches or more (by default both
// are about 1 MB).
func NewSink(client *kgo.Client) (outbox.Sink, error) {
	if client == nil {
		return nil, errors.New("semelkafka: NewSink: the client is nil")
	}
	if acks, ok := client.OptValue(kgo.RequiredAcks).(kgo.Acks); ok && acks != kgo.AllISRAcks() {
		return nil, errors.New("semelkafka: NewSink: the client does not wait for all in-sync replicas, so that an acknowledged message may be lost; remove kgo.RequiredAcks, or use kgo.AllISRAcks")
	}
	return &sink{client: client}, nil
}

// Publish implements outbox.Sink.
func (s *sink) Publish(ctx context.Context, messages []outbox.Message, answer func(i int, err error)) {
	outbox.EachInTurn(ctx, messages, outbox.Limits{}, answer, s.send)
}

func (s *sink) send(ctx context.Context, m *outbox.Message) error {
	r := &kgo.Record{Topic: m.Topic, Value: m.Body}
	if m.OrderKey != "" {
		r.Key = []byte(m.OrderKey)
	}
	for _, h := range m.SentHeaders() {
		r.Headers = append(r.Headers, kgo.RecordHeader{Key: h.Name, Value: []byte(h.Value)})
	}
	limited, cancel := context.WithTimeoutCause(ctx, sinkTimeout, errSinkTimeout)
	defer cancel()
	one, _ := s.topics.LoadOrStore(m.Topic, &sync.RWMutex{})
	topic := one.(*sync.RWMutex) //nolint:forcetypeassert // nothing else is stored
	topic.RLock()
	err := s.produce(ctx, limited, r)
	topic.RUnlock()
	if errors.Is(err, kerr.MessageTooLarge) { // perhaps its batch was
		topic.Lock()
		err = s.produce(ctx, limited, r)
		topic.Unlock()
	}
	if err != nil && ctx.Err() == nil && limited.Err() != nil {
		err = fmt.Errorf("%w: %w", context.Cause(limited), err)
	}
	if err == nil {
		return nil
	}
	err = fmt.Errorf("semelkafka: message of %d bytes to topic %q: %w", len(m.Body), m.Topic, err)
	if errors.Is(err, kerr.UnknownTopicOrPartition) {
		return fmt.Errorf("%w; create the topic with: kafka-topics --create --topic %s", err, m.Topic)
	}
	if errors.Is(err, kerr.MessageTooLarge) || errors.Is(err, kerr.InvalidTopicException) || errors.Is(err, kerr.InvalidRecord) {
		return outbox.Poison(err)
	}
	return err
}

// produce sends a record, unless the publisher's context or the time for the message has ended.
func (s *sink) produce(ctx, limited context.Context, r *kgo.Record) error {
	if err := cmp.Or(ctx.Err(), limited.Err()); err != nil {
		return err
	}
	return s.client.ProduceSync(limited, &kgo.Record{Topic: r.Topic, Key: r.Key, Headers: r.Headers, Value: r.Value}).FirstErr()
}
