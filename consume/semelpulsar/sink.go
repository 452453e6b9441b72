package semelpulsar

import (
	"context"
	"errors"
	"fmt"
	"sync"

	"github.com/apache/pulsar-client-go/pulsar"

	"github.com/semel-go/semel/outbox"
)

// Sink publishes the messages of an outbox. Make it with [NewSink]. It is safe for
// concurrent use.
type Sink struct {
	client pulsar.Client

	mu     sync.Mutex
	opened map[string]*opening // by the topic; nil after Close
}

var _ outbox.Sink = (*Sink)(nil)

// opening is a producer that is made, or was.
type opening struct {
	done     chan struct{} // closed when producer and err are set
	producer pulsar.Producer
	err      error
}

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
	return &Sink{client: client, opened: map[string]*opening{}}, nil
}

// sinkParallel is how many messages a call of Publish sends at once.
const sinkParallel = 64

// Publish implements outbox.Sink.
func (s *Sink) Publish(ctx context.Context, messages []outbox.Message, answer func(i int, err error)) {
	outbox.EachInTurn(ctx, messages, sinkParallel, answer, s.send)
}

func (s *Sink) send(ctx context.Context, m *outbox.Message) error {
	topic := fullName(m.Topic)
	if err := checkTopic(topic); err != nil {
		return outbox.Poison(fmt.Errorf("semelpulsar: topic: %w", err))
	}
	o, err := s.open(ctx, topic)
	if err != nil {
		return fmt.Errorf("semelpulsar: %w", err)
	}
	out := &pulsar.ProducerMessage{Payload: m.Body, Key: m.OrderKey, Properties: map[string]string{}}
	for _, h := range m.SentHeaders() {
		out.Properties[h.Name] = h.Value
	}
	_, err = o.producer.Send(ctx, out)
	if err == nil {
		return nil
	}
	// The client closes a producer whose topic was deleted or terminated, and does not
	// connect it again.
	for _, closed := range []error{pulsar.ErrProducerClosed, pulsar.ErrTopicNotfound, pulsar.ErrTopicTerminated, pulsar.ErrProducerFenced} {
		if errors.Is(err, closed) {
			s.forget(topic, o)
		}
	}
	if errors.Is(err, pulsar.ErrMessageTooLarge) || errors.Is(err, pulsar.ErrMetaTooLarge) {
		return outbox.Poison(fmt.Errorf("semelpulsar: message of %d bytes to topic %q: is larger than the broker's maxMessageSize, which is 5 MiB by default; "+
			"keep the body elsewhere and send its address, or raise the setting in the broker: %w", len(m.Body), topic, err))
	}
	return fmt.Errorf("semelpulsar: message of %d bytes to topic %q: %w", len(m.Body), topic, err)
}

// open returns the producer of a topic, and makes it if there is none. The client's call
// takes no context, so that it may end after ctx; the next call of open then waits for it.
func (s *Sink) open(ctx context.Context, topic string) (*opening, error) {
	s.mu.Lock()
	if s.opened == nil {
		s.mu.Unlock()
		return nil, errors.New("the sink is closed")
	}
	o := s.opened[topic]
	if o == nil {
		o = &opening{done: make(chan struct{})}
		s.opened[topic] = o
		go s.create(topic, o)
	}
	s.mu.Unlock()
	select {
	case <-o.done:
		return o, o.err
	case <-ctx.Done():
		return nil, ctx.Err()
	}
}

// create makes the producer of a topic.
func (s *Sink) create(topic string, o *opening) {
	p, err := s.client.CreateProducer(pulsar.ProducerOptions{
		Topic: topic, DisableBatching: true, SendTimeout: sendTimeout, BackOffPolicyFunc: newReconnects,
	})
	if err != nil {
		o.err = explain(topic, err)
		s.forget(topic, o)
		close(o.done)
		return
	}
	o.producer = p
	close(o.done)
}

// forget has the next message of a topic make a producer of its own.
func (s *Sink) forget(topic string, o *opening) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.opened[topic] != o {
		return
	}
	delete(s.opened, topic)
	if o.producer != nil {
		go o.producer.Close()
	}
}

// Close closes the producers. It waits for one that is being made, at most the client's
// OperationTimeout. If the answer to a message has not come, a publisher sends the message
// again.
func (s *Sink) Close() error {
	s.mu.Lock()
	opened := s.opened
	s.opened = nil
	s.mu.Unlock()
	for _, o := range opened {
		<-o.done
		if o.producer != nil {
			o.producer.Close()
		}
	}
	return nil
}
