package semelnats

import (
	"context"
	"errors"
	"fmt"
	"slices"

	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"

	"github.com/semel-go/semel/outbox"
	"github.com/semel-go/semel/store"
)

// sink publishes the messages of an outbox.
type sink struct{ js jetstream.JetStream }

// NewSink makes a sink for an outbox.Publisher: it publishes each message to the subject
// Message.Topic, which a stream must take, with Message.ID as its idempotency key. The
// order key is in the header OrderKeyHeader. Of one order key it sends the next message
// when the stream has stored the one before. The server drops a message that is sent
// again within the stream's duplicate window, by Message.DeduplicationID. Headers that begin
// with "Nats-" are not sent, nor is Status with an empty body, because no client could read
// that message. A header with a name that the client refuses, such as trace/id, or with a
// value that it changes, such as one with spaces at the ends, is sent packed, and a Source
// unpacks it. A message that is too large, or whose subject is invalid, is poison.
func NewSink(js jetstream.JetStream) (outbox.Sink, error) {
	if js == nil {
		return nil, errors.New("semelnats: NewSink: the JetStream is nil")
	}
	return &sink{js}, nil
}

// OrderKeyHeader is the header in which a sink sends the order key of a message, for
// Options.OrderKey of the consumer.
const OrderKeyHeader = "semel-order-key"

// Publish implements outbox.Sink.
func (s *sink) Publish(ctx context.Context, messages []outbox.Message, answer func(i int, err error)) {
	outbox.EachInTurn(ctx, messages, outbox.Limits{}, answer, s.send)
}

func (s *sink) send(ctx context.Context, m *outbox.Message) error {
	hs := m.SentHeaders()
	if m.OrderKey != "" {
		hs = slices.DeleteFunc(hs, func(h store.Header) bool { return h.Name == OrderKeyHeader })
		hs = append(hs, store.Header{Name: OrderKeyHeader, Value: m.OrderKey})
	}
	out := newMsg(m.Topic, hs, m.Body)
	out.Header.Set(jetstream.MsgIDHeader, m.DeduplicationID())
	_, err := s.js.PublishMsg(ctx, out)
	if err == nil {
		return nil
	}
	err = fmt.Errorf("semelnats: message of %d bytes to subject %q: %w", len(m.Body), m.Topic, err)
	if tooLarge(err) || errors.Is(err, nats.ErrBadSubject) || errors.Is(err, jetstream.ErrInvalidSubject) {
		return outbox.Poison(err)
	}
	if errors.Is(err, jetstream.ErrNoStreamResponse) || errors.Is(err, nats.ErrNoResponders) {
		return fmt.Errorf("%w; no stream takes this subject; create one with: nats stream add --subjects %s", err, m.Topic)
	}
	return err
}
