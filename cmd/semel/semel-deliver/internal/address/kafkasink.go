package address

import (
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/twmb/franz-go/pkg/kgo"

	"github.com/semel-go/semel/consume/semelkafka"
	"github.com/semel-go/semel/outbox"
)

// recordTime is how long the client tries to send a record before the publisher reports
// a failed attempt.
const recordTime = 30 * time.Second

// parseKafkaSink reads kafka://HOST:PORT,….
func parseKafkaSink(a *address, _ *SinkOptions) (*Sink, error) {
	if len(a.path) > 0 {
		return nil, errors.New("names a topic, but messages name their own; end the address after the hosts, and rename topics by --topic OLD=NEW")
	}
	opts, err := a.kafkaClient()
	if err != nil {
		return nil, err
	}
	opts = append(opts, kgo.ClientID("semel-outbox"), kgo.ProducerLinger(0), kgo.RecordDeliveryTimeout(recordTime))
	return &Sink{open: func(ctx context.Context) (outbox.Sink, func() error, error) {
		clients := make([]*kgo.Client, 0, 2)
		closeAll := func() error {
			for _, c := range clients {
				c.Close()
			}
			return nil
		}
		var sinks [2]outbox.Sink
		for i, more := range [][]kgo.Opt{nil, {kgo.ProducerBatchMaxBytes(largestRequest)}} {
			client, err := kgo.NewClient(append(slices.Clone(opts), more...)...)
			if err == nil {
				clients = append(clients, client)
				sinks[i], err = semelkafka.NewSink(client)
			}
			if err != nil {
				_ = closeAll()
				return nil, nil, err
			}
		}
		if err := clients[0].Ping(ctx); err != nil {
			_ = closeAll()
			return nil, nil, fmt.Errorf("no connection: %w; see whether it answers with: kcat -b %s -L, and check the user, the password, sasl and tls", err, strings.Join(a.hosts, ","))
		}
		return &kafkaSink{small: sinks[0], large: sinks[1]}, closeAll, nil
	}}, nil
}

const (
	// largestRequest is the default of Kafka's socket.request.max.bytes.
	largestRequest = 100 << 20
	// smallRecord is how large a message may be in a batch: the client's batches have up to
	// 1,000,012 bytes, the default of the topics' max.message.bytes.
	smallRecord = 900_000
)

// kafkaSink sends large messages, about which the broker decides, in batches of their own: the
// broker refuses a whole batch, so that it would refuse small messages with a large one.
type kafkaSink struct {
	small, large outbox.Sink
	topics       sync.Map // *sync.Mutex by topic: one large message at a time, so that no batch has two
}

// Publish implements outbox.Sink.
func (s *kafkaSink) Publish(ctx context.Context, messages []outbox.Message, answer func(i int, err error)) {
	outbox.EachInTurn(ctx, messages, outbox.Limits{}, answer, s.send)
}

func (s *kafkaSink) send(ctx context.Context, m *outbox.Message) (err error) {
	sink, size := s.small, len(m.OrderKey)+len(m.Body)
	for _, h := range m.SentHeaders() {
		size += len(h.Name) + len(h.Value) + 2*binary.MaxVarintLen32
	}
	if size > smallRecord {
		sink = s.large
		one, _ := s.topics.LoadOrStore(m.Topic, &sync.Mutex{})
		one.(*sync.Mutex).Lock()         //nolint:forcetypeassert // nothing else is stored
		defer one.(*sync.Mutex).Unlock() //nolint:forcetypeassert // nothing else is stored
	}
	sink.Publish(ctx, []outbox.Message{*m}, func(_ int, answered error) { err = answered })
	return err
}
