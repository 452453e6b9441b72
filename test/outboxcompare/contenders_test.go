package outboxcompare

import (
	"context"
	"fmt"
	"testing"
	"time"

	"github.com/IBM/sarama"
	"github.com/ThreeDotsLabs/watermill"
	"github.com/ThreeDotsLabs/watermill-kafka/v3/pkg/kafka"
	wsql "github.com/ThreeDotsLabs/watermill-sql/v4/pkg/sql"
	"github.com/ThreeDotsLabs/watermill/components/forwarder"
	"github.com/ThreeDotsLabs/watermill/message"
	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"
	"github.com/twmb/franz-go/pkg/kgo"

	"github.com/semel-go/semel/consume/semelkafka"
	"github.com/semel-go/semel/outbox"
	"github.com/semel-go/semel/store/pgstore"
	"github.com/semel-go/semel/store/pgstore/pgoutbox"
)

// contender is an outbox in PostgreSQL that publishes to Kafka.
type contender struct {
	name string
	// put writes messages with the numbers from to to-1 in one transaction.
	put func(ctx context.Context, from, to int) error
	// run publishes to a topic until ctx ends.
	run func(ctx context.Context) error
}

const (
	keys     = 1000 // order keys
	bodySize = 200  // bytes
)

var body = []byte(`{"x":"` + fmt.Sprintf("%0*d", bodySize-8, 0) + `"}`)

func keyOf(n int) string { return fmt.Sprint("key", n%keys) }

// semelOutbox is the outbox with the default options.
func semelOutbox(t *testing.T, pool *pgxpool.Pool, broker string) contender {
	t.Helper()
	st, err := pgstore.New(t.Context(), pool, nil)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = st.Close() })
	box, err := pgoutbox.New(st, nil)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = box.Close() })
	client, err := kgo.NewClient(kgo.SeedBrokers(broker), kgo.ProducerLinger(0), kgo.AllowIdempotentProduceCancellation())
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(client.Close)
	sink, err := semelkafka.NewSink(client)
	if err != nil {
		t.Fatal(err)
	}
	return contender{
		name: "Semel",
		put: func(ctx context.Context, from, to int) error {
			messages := make([]outbox.Message, 0, to-from)
			for n := from; n < to; n++ {
				messages = append(messages, outbox.Message{Topic: "semel", OrderKey: keyOf(n), ID: fmt.Sprint(n), Body: body})
			}
			return pgx.BeginFunc(ctx, pool, func(tx pgx.Tx) error { return box.Put(ctx, tx, messages...) })
		},
		run: func(ctx context.Context) error {
			p, err := outbox.New(box, sink, nil)
			if err != nil {
				return err
			}
			return p.Run(ctx)
		},
	}
}

// orderHeader is the header with the order key of a message of Watermill.
const orderHeader = "order-key"

// watermillForwarder is Watermill's forwarder. Like the sink of Semel it waits for all
// in-sync replicas, and its messages have an order key. It reads 1000 messages at once,
// because that is faster than its default of 100.
func watermillForwarder(t *testing.T, pool *pgxpool.Pool, broker, topic string, poll time.Duration) contender {
	t.Helper()
	const queue = "forwarded"
	log := watermill.NopLogger{}
	schema := wsql.DefaultPostgreSQLSchema{SubscribeBatchSize: 1000, GenerateMessagesTableName: func(string) string { return "watermill_" + topic }}
	offsets := wsql.DefaultPostgreSQLOffsetsAdapter{GenerateMessagesOffsetsTableName: func(string) string { return "watermill_offsets_" + topic }}
	subscriber := func() (*wsql.Subscriber, error) {
		return wsql.NewSubscriber(wsql.BeginnerFromPgx(pool), wsql.SubscriberConfig{SchemaAdapter: schema, OffsetsAdapter: offsets, PollInterval: poll, InitializeSchema: true}, log)
	}
	s, err := subscriber()
	if err != nil {
		t.Fatal(err)
	}
	if err := s.SubscribeInitialize(queue); err != nil {
		t.Fatal(err)
	}
	config := kafka.DefaultSaramaSyncPublisherConfig()
	config.Producer.RequiredAcks = sarama.WaitForAll
	return contender{
		name: fmt.Sprintf("Watermill, poll %v", poll),
		put: func(ctx context.Context, from, to int) error {
			messages := make([]*message.Message, 0, to-from)
			for n := from; n < to; n++ {
				m := message.NewMessage(fmt.Sprint(n), body)
				m.Metadata.Set(orderHeader, keyOf(n))
				messages = append(messages, m)
			}
			return pgx.BeginFunc(ctx, pool, func(tx pgx.Tx) error {
				p, err := wsql.NewPublisher(wsql.TxFromPgx(tx), wsql.PublisherConfig{SchemaAdapter: schema}, log)
				if err != nil {
					return err
				}
				return forwarder.NewPublisher(p, forwarder.PublisherConfig{ForwarderTopic: queue}).Publish(topic, messages...)
			})
		},
		run: func(ctx context.Context) error {
			s, err := subscriber()
			if err != nil {
				return err
			}
			p, err := kafka.NewPublisher(kafka.PublisherConfig{
				Brokers: []string{broker}, OverwriteSaramaConfig: config,
				Marshaler: kafka.NewWithPartitioningMarshaler(func(_ string, m *message.Message) (string, error) { return m.Metadata.Get(orderHeader), nil }),
			}, log)
			if err != nil {
				return err
			}
			f, err := forwarder.NewForwarder(s, p, log, forwarder.Config{ForwarderTopic: queue})
			if err != nil {
				return err
			}
			return f.Run(ctx)
		},
	}
}
