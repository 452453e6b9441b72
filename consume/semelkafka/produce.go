package semelkafka

import (
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

// producer sends records. A broker refuses a whole batch, and a client compares sizes before
// compression. So a record that is refused for its size is sent again, alone in its batch and
// whatever its size, by a second client, and the broker decides about it. Its partition is the
// one that the first client has chosen.
type producer struct {
	client *kgo.Client
	large  func() (*kgo.Client, error)
	turns  sync.Map // chan struct{} by partitionID: has one while the second client has a record of the partition
}

// newProducer makes a producer that sends by a client. The second client has these options,
// and is closed with the first.
func newProducer(client *kgo.Client, opts ...kgo.Opt) *producer {
	return &producer{client: client, large: sync.OnceValues(func() (*kgo.Client, error) {
		large, err := newClient(append(slices.Clone(opts), kgo.RecordPartitioner(kgo.ManualPartitioner()))...)
		if err == nil {
			context.AfterFunc(client.Context(), large.Close)
		}
		return large, err
	})}
}

// produce returns nil after all in-sync replicas have stored the record.
func (p *producer) produce(ctx context.Context, r *kgo.Record) error {
	err := p.client.ProduceSync(ctx, r).FirstErr()
	if !errors.Is(err, kerr.MessageTooLarge) {
		return err
	}
	large, err := p.large()
	if err != nil {
		return err
	}
	v, _ := p.turns.LoadOrStore(partitionID{r.Topic, r.Partition}, make(chan struct{}, 1))
	turn := v.(chan struct{}) //nolint:forcetypeassert // nothing else is stored
	select {
	case turn <- struct{}{}:
		defer func() { <-turn }()
	case <-ctx.Done():
		return fmt.Errorf("the message was not sent, because Kafka has not acknowledged the large message before it in the same partition: %w", ctx.Err())
	}
	if err := ctx.Err(); err != nil { // a lease can end without Done
		return err
	}
	return large.ProduceSync(ctx, r).FirstErr() // r has the time of the first send, from which kgo.RecordDeliveryTimeout counts
}

// sink publishes the messages of an outbox.
type sink struct{ producer *producer }

// sinkLimits limit the time for one message, because a client without
// kgo.RecordDeliveryTimeout tries for ever, and tells nobody why.
var sinkLimits = outbox.Limits{
	Time: 45 * time.Second, Hint: "see whether the partition has a leader and enough in-sync replicas with: kafka-topics --describe",
}

// NewSink makes a sink for an outbox.Publisher: it sends each message to the topic
// Message.Topic, with Message.OrderKey as the key of the record, and Message.ID as its
// idempotency key. Of one order key it sends the next message when all in-sync replicas
// have the one before, so give the client kgo.ProducerLinger(0). It must wait for all
// replicas (kgo.AllISRAcks, the default), must not consume, and needs
// kgo.AllowIdempotentProduceCancellation, because without it a record whose request has no
// answer fails at no time limit, and neither do those after it in its partition.
//
// A message that is not acknowledged within 45 s counts as failed, and may arrive all the
// same. With a shorter kgo.RecordDeliveryTimeout the error names the cause. Records of an
// order key keep their order while the topic keeps its number of partitions.
//
// A message whose topic's name is invalid is poison, and so is one that is larger than the
// topic's max.message.bytes or the client's kgo.BrokerMaxWriteBytes (100 MiB by default).
// The package documentation says how messages of more than 1 MB are sent.
func NewSink(client *kgo.Client) (outbox.Sink, error) {
	if client == nil {
		return nil, errors.New("semelkafka: NewSink: the client is nil")
	}
	if acks, ok := client.OptValue(kgo.RequiredAcks).(kgo.Acks); ok && acks != kgo.AllISRAcks() {
		return nil, errors.New("semelkafka: NewSink: the client does not wait for all in-sync replicas, so that an acknowledged message may be lost; remove kgo.RequiredAcks, or use kgo.AllISRAcks")
	}
	if client.OptValue(kgo.DisableIdempotentWrite) == false && client.OptValue(kgo.AllowIdempotentProduceCancellation) == false {
		return nil, errors.New("semelkafka: NewSink: the client never gives up a record whose request has no answer, so that a partition without a leader stops its topic; add kgo.AllowIdempotentProduceCancellation()")
	}
	if consumes(client) {
		return nil, errors.New("semelkafka: NewSink: the client consumes, and so would the second client of the sink; give the sink a client without kgo.ConsumeTopics, kgo.ConsumePartitions and a group")
	}
	most, _ := client.OptValue(kgo.BrokerMaxWriteBytes).(int32)
	return &sink{newProducer(client, append(slices.Clone(client.Opts()), kgo.ProducerBatchMaxBytes(most))...)}, nil
}

func consumes(client *kgo.Client) bool {
	topics, _ := client.OptValue(kgo.ConsumeTopics).([]string)
	partitions, _ := client.OptValue(kgo.ConsumePartitions).(map[string]map[int32]kgo.Offset)
	return len(topics) > 0 || len(partitions) > 0 || client.OptValue(kgo.ConsumerGroup) != "" || client.OptValue(kgo.ShareGroup) != ""
}

// Publish implements outbox.Sink.
func (s *sink) Publish(ctx context.Context, messages []outbox.Message, answer func(i int, err error)) {
	outbox.EachInTurn(ctx, messages, sinkLimits, answer, s.send)
}

func (s *sink) send(ctx context.Context, m *outbox.Message) error {
	r := &kgo.Record{Topic: m.Topic, Value: m.Body}
	if m.OrderKey != "" {
		r.Key = []byte(m.OrderKey)
	}
	for _, h := range m.SentHeaders() {
		r.Headers = append(r.Headers, kgo.RecordHeader{Key: h.Name, Value: []byte(h.Value)})
	}
	err := s.producer.produce(ctx, r)
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
