package semelsqs

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"strings"
	"sync"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/sqs"

	"github.com/semel-go/semel/outbox"
)

// sink publishes the messages of an outbox.
type sink struct {
	client *sqs.Client

	mu   sync.Mutex
	urls map[string]string // by the queue's name
}

// NewSink makes a sink for an outbox.Publisher: it sends each message to the queue whose
// name or URL is Message.Topic, encoded by Encode, with Message.ID as its idempotency key.
//
// In a FIFO queue Message.OrderKey is the message group, so that the order is kept, and
// SQS drops a message that is sent again within five minutes, by Message.DeduplicationID,
// which is also the group of a message without an order key. Order keys of such a queue have up to 128 characters of
// the ASCII alphabet, digits and punctuation; a message with another one is poison, and so
// is one that is too large. A standard queue keeps no order.
//
// A message that SQS does not answer within 15 s counts as failed, and may arrive all the
// same.
func NewSink(client *sqs.Client) (outbox.Sink, error) {
	if client == nil {
		return nil, errors.New("semelsqs: NewSink: the client is nil")
	}
	return &sink{client: client, urls: map[string]string{}}, nil
}

const (
	// sinkParallel is how many requests a call of Publish sends at once.
	sinkParallel = 64
	// sinkTimeout limits the time for one message with its repeats, because the client of
	// AWS waits for an answer for ever.
	sinkTimeout = 15 * time.Second
)

// Publish implements outbox.Sink.
func (s *sink) Publish(ctx context.Context, messages []outbox.Message, answer func(i int, err error)) {
	outbox.EachInTurn(ctx, messages, outbox.Limits{Parallel: sinkParallel, Time: sinkTimeout, Hint: "see whether the endpoint can be reached"}, answer, s.send)
}

func (s *sink) send(ctx context.Context, m *outbox.Message) error {
	url, err := s.url(ctx, m.Topic)
	if err = cmp.Or(err, ctx.Err()); err != nil { // the look-up may have outlasted the lease
		return fmt.Errorf("semelsqs: %w", explain(m.Topic, err))
	}
	text, attributes := Encode(m.SentHeaders(), m.Body)
	in := &sqs.SendMessageInput{QueueUrl: &url, MessageBody: &text, MessageAttributes: attributes}
	if isFIFOName(m.Topic) {
		id := m.DeduplicationID()
		group := m.OrderKey
		if group == "" {
			group = id
		}
		if !validGroup(group) {
			return outbox.Poison(fmt.Errorf("semelsqs: order key %q is no message group of a FIFO queue: it needs 1 to 128 ASCII letters, digits and punctuation", group))
		}
		in.MessageGroupId, in.MessageDeduplicationId = &group, &id
	}
	if _, err := s.client.SendMessage(ctx, in); err != nil {
		err = fmt.Errorf("semelsqs: message of %d bytes to queue %q: %w", len(m.Body), m.Topic, err)
		if isTooLarge(err) {
			err = outbox.Poison(err)
		}
		return err
	}
	return nil
}

func validGroup(group string) bool {
	return len(group) <= 128 && !strings.ContainsFunc(group, func(r rune) bool { return r <= ' ' || r > '~' })
}

// url is the URL of a queue, which is looked up once.
func (s *sink) url(ctx context.Context, queue string) (string, error) {
	if strings.HasPrefix(queue, "https://") || strings.HasPrefix(queue, "http://") {
		return queue, nil
	}
	s.mu.Lock()
	url, ok := s.urls[queue]
	s.mu.Unlock()
	if ok {
		return url, nil
	}
	out, err := s.client.GetQueueUrl(ctx, &sqs.GetQueueUrlInput{QueueName: &queue})
	if err != nil {
		return "", err
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	s.urls[queue] = aws.ToString(out.QueueUrl)
	return s.urls[queue], nil
}
