// Package kafkasend sends messages to Kafka for the examples, as a producer of
// another service does, and creates the topics that a consumer needs.
package kafkasend

import (
	"context"
	"encoding/json"
	"errors"

	"github.com/twmb/franz-go/pkg/kadm"
	"github.com/twmb/franz-go/pkg/kerr"
	"github.com/twmb/franz-go/pkg/kgo"

	"github.com/semel-go/semel/consume/semelkafka"
)

// Message is one message to send.
type Message struct {
	Key   string // the idempotency key, the same each time the message is sent
	Order string // messages with the same value stay in order
	Body  any    // sent as JSON
}

// Send produces messages to a topic, and returns nil when the broker has
// confirmed them. After an error the caller may send all of them again, because
// the consumer handles each Key once.
func Send(ctx context.Context, broker, topic string, messages ...Message) error {
	client, err := kgo.NewClient(kgo.SeedBrokers(broker))
	if err != nil {
		return err
	}
	defer client.Close()
	for _, m := range messages {
		body, err := json.Marshal(m.Body)
		if err != nil {
			return err
		}
		record := semelkafka.Keyed(&kgo.Record{Topic: topic, Key: []byte(m.Order), Value: body}, m.Key)
		if err := client.ProduceSync(ctx, record).FirstErr(); err != nil {
			return err
		}
	}
	return nil
}

// CreateTopics creates the topic, and the topics for messages that the group
// cannot handle. Topics that exist stay as they are. In production an operator
// creates the topics, with more replicas.
func CreateTopics(ctx context.Context, broker, topic, group string) error {
	client, err := kgo.NewClient(kgo.SeedBrokers(broker))
	if err != nil {
		return err
	}
	defer client.Close()
	for _, name := range []string{topic, "dead-letters." + group, "quarantine." + group} {
		r, err := kadm.NewClient(client).CreateTopic(ctx, 3, 1, nil, name)
		if err = errors.Join(err, r.Err); err != nil && !errors.Is(err, kerr.TopicAlreadyExists) {
			return err
		}
	}
	return nil
}
