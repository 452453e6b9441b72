package semelamqp

import (
	"context"
	"errors"
	"fmt"
	"time"

	amqp "github.com/rabbitmq/amqp091-go"

	"github.com/semel-go/semel/outbox"
)

// SinkOptions configures a Sink. Nil and zero fields mean the defaults.
type SinkOptions struct {
	// Exchange takes the messages, with Message.Topic as their routing key. Empty, the
	// default: Message.Topic is the name of a queue.
	Exchange string
	// Config is for the connection, as in Options.
	Config amqp.Config
}

// Sink publishes the messages of an outbox. Make it with [NewSink].
type Sink struct {
	publisher *publisher
	exchange  string
	limits    outbox.Limits
}

// sinkTimeout is how long a message may wait for its confirm, because a queue without a
// majority gives none, and its messages would take all places of the publisher.
const sinkTimeout = 45 * time.Second

const sinkHint = "see whether the broker answers and the queue has a majority with: rabbitmq-queues quorum_status QUEUE"

var _ outbox.Sink = (*Sink)(nil)

// NewSink makes a sink for an outbox.Publisher. It publishes each message persistently,
// with Message.ID as its idempotency key and as the property message-id, and the order
// key in the header OrderKeyHeader. A message counts as sent when the broker has
// confirmed it. Of one order key the sink sends the next message after the confirm of the
// one before. A message that no queue takes is not sent, and is tried again. A message that
// is not confirmed within 45 s counts as failed, and may arrive all the same. A message is
// poison if it is larger than the broker's max_message_size, if its headers do not fit into
// a frame (128 KiB by default), or if a header's name is longer than 255 bytes. Nil options
// mean the defaults. NewSink does not connect.
//
// The sink sends up to 16 messages of a topic at once, each in a channel of its own. The others
// wait for the confirms of these, and their 45 s begin after that. If a queue confirms none
// for 45 s, such as a quorum queue without a majority, they fail, too. Other topics go on,
// unless such queues hold all channels of the connection: with RabbitMQ's channel_max of
// 2047 that takes more than 100 queues.
func NewSink(url string, o *SinkOptions) (*Sink, error) {
	if url == "" {
		return nil, errors.New("semelamqp: NewSink: the URL is empty")
	}
	var d SinkOptions
	if o != nil {
		d = *o
	}
	return &Sink{newPublisher(url, d.Config), d.Exchange, outbox.Limits{Time: sinkTimeout, Hint: sinkHint}}, nil
}

// OrderKeyHeader is the header in which a sink sends the order key of a message, for
// Options.OrderKey of the consumer.
const OrderKeyHeader = "semel-order-key"

// Close closes the connection.
func (s *Sink) Close() error {
	s.publisher.close()
	return nil
}

// Publish implements outbox.Sink.
func (s *Sink) Publish(ctx context.Context, messages []outbox.Message, answer func(i int, err error)) {
	outbox.EachInTurn(ctx, messages, outbox.Limits{}, answer, s.send) // publisher.slots limits each topic
}

func (s *Sink) send(ctx context.Context, m *outbox.Message) error {
	p := amqp.Publishing{DeliveryMode: amqp.Persistent, MessageId: m.ID, Headers: amqp.Table{}, Body: m.Body}
	for _, h := range m.SentHeaders() {
		p.Headers[h.Name] = h.Value
	}
	if m.OrderKey != "" {
		p.Headers[OrderKeyHeader] = m.OrderKey
	}
	if err := checkNames(p.Headers); err != nil {
		return outbox.Poison(err)
	}
	q := queue{name: m.Topic, exchange: s.exchange}
	free, err := s.publisher.slots.takeSoon(ctx, q.slot(), s.limits.Time) // before its time begins
	if errors.Is(err, errNoPlace) {
		return fmt.Errorf("semelamqp: exchange %q, routing key %q: the broker has not confirmed the messages before this one, and %w; %s", s.exchange, m.Topic, err, s.limits.Hint)
	} else if err != nil {
		return err
	}
	return s.limits.Within(ctx, func(ctx context.Context) error {
		err := start(func() error {
			defer free()
			return s.publisher.deliver(ctx, q, p)
		}).wait(ctx)
		return s.explain(m, err)
	})
}

// explain is the error of a message that was not sent.
func (s *Sink) explain(m *outbox.Message, err error) error {
	switch {
	case isTooLarge(err):
		return outbox.Poison(fmt.Errorf("semelamqp: message of %d bytes, exchange %q, routing key %q: %w", len(m.Body), s.exchange, m.Topic, err))
	case err == nil:
		return nil
	case !errors.Is(err, errUnroutable):
		return fmt.Errorf("exchange %q, routing key %q: %w", s.exchange, m.Topic, err)
	case s.exchange == "":
		return fmt.Errorf("semelamqp: queue %q: %w; a queue keeps the arguments that it is made with, so start its consumer first, which makes it (Options.Declare, or declare=all in an address of semel deliver); or, for another consumer: rabbitmqadmin declare queue name=%s durable=true arguments='{\"x-queue-type\":\"quorum\"}' (with RabbitMQ 4 also \"x-delivery-limit\":-1, because otherwise the queue drops a message after 20 deliveries)", m.Topic, err, m.Topic)
	}
	return fmt.Errorf("semelamqp: exchange %q, routing key %q: %w; bind a queue with: rabbitmqadmin declare binding source=%s destination=QUEUE routing_key=%s",
		s.exchange, m.Topic, err, s.exchange, m.Topic)
}
