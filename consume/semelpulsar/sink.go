package semelpulsar

import (
	"context"
	"errors"
	"fmt"

	"github.com/apache/pulsar-client-go/pulsar"

	"github.com/semel-go/semel/outbox"
)

// Sink publishes the messages of an outbox. Make it with [NewSink]. It is safe for
// concurrent use.
type Sink struct {
	producers producers
}

var _ outbox.Sink = (*Sink)(nil)

// NewSink makes a sink for an outbox.Publisher. It sends each message to the topic
// Message.Topic, with Message.ID as its idempotency key, and Message.OrderKey as the key,
// by which Pulsar chooses the partition. A message counts as sent when the broker has
// stored it. Of one order key the sink sends the next message after the answer to the one
// before. It sends no batches, so that a key-shared subscription keeps the order, too.
//
// A message is poison if it is larger than the broker takes (5 MiB by default), or if its
// topic has an invalid name or is not persistent. Pulsar deletes a message of a topic that
// has no subscription.
//
// NewSink does no I/O. The sink keeps a producer for each topic until Close; the caller
// closes the client.
func NewSink(client pulsar.Client) (*Sink, error) {
	if client == nil {
		return nil, errors.New("semelpulsar: NewSink: the client is nil")
	}
	return &Sink{producers{create: func(topic string) (pulsar.Producer, error) {
		p, err := client.CreateProducer(pulsar.ProducerOptions{
			Topic: topic, DisableBatching: true, SendTimeout: sendTimeout, BackOffPolicyFunc: newReconnects,
		})
		if err != nil {
			return nil, explain(topic, err)
		}
		return p, nil
	}}}, nil
}

// Publish implements outbox.Sink. It limits nothing, so that a topic that does not answer
// delays no other.
func (s *Sink) Publish(ctx context.Context, messages []outbox.Message, answer func(i int, err error)) {
	outbox.EachInTurn(ctx, messages, outbox.Limits{}, answer, s.send)
}

func (s *Sink) send(ctx context.Context, m *outbox.Message) error {
	topic := fullName(m.Topic)
	if err := checkTopic(topic); err != nil {
		return outbox.Poison(fmt.Errorf("semelpulsar: topic: %w", err))
	}
	out := &pulsar.ProducerMessage{Payload: m.Body, Key: m.OrderKey, Properties: map[string]string{}}
	for _, h := range m.SentHeaders() {
		out.Properties[h.Name] = h.Value
	}
	err := s.producers.send(ctx, topic, out)
	if err == nil {
		return nil
	}
	if errors.Is(err, pulsar.ErrMessageTooLarge) || errors.Is(err, pulsar.ErrMetaTooLarge) {
		return outbox.Poison(fmt.Errorf("semelpulsar: message of %d bytes to topic %q: is larger than the broker's maxMessageSize, which is 5 MiB by default; "+
			"keep the body elsewhere and send its address, or raise the setting in the broker: %w", len(m.Body), topic, err))
	}
	return fmt.Errorf("semelpulsar: message of %d bytes to topic %q: %w", len(m.Body), topic, err)
}

// Close closes the producers. It waits for one that is being made, at most the client's
// OperationTimeout. If the answer to a message has not come, a publisher sends the message
// again.
func (s *Sink) Close() error {
	s.producers.close()
	return nil
}
