package campaign

import (
	"context"
	"crypto/rand"
	"fmt"
	"iter"
	"strconv"
	"testing"
	"time"

	"github.com/aws/aws-sdk-go-v2/service/sqs"
	"github.com/aws/aws-sdk-go-v2/service/sqs/types"

	"github.com/semel-go/semel/consume"
	"github.com/semel-go/semel/consume/consumetest"
	"github.com/semel-go/semel/consume/driver"
	"github.com/semel-go/semel/consume/semelsqs"
	"github.com/semel-go/semel/consume/semelsqs/sqstest"
)

// queue is a queue of SQS with its queues of copies.
type queue struct {
	url, name string
	fifo      bool
	client    *sqs.Client
	queues    [3]string // URLs: the queue, its dead letters, its quarantine
}

// openQueue makes the queues on the server that tests share.
func openQueue(t *testing.T, fifo bool) *queue {
	t.Helper()
	url := sqstest.URL(t)
	q := &queue{url: url, client: sqstest.Client(url), fifo: fifo}
	// SQS counts whole seconds, and 2 s is how long the messages of a dead member wait.
	base, suffix, attributes := "campaign-"+rand.Text()[:8], "", map[string]string{"VisibilityTimeout": "2"}
	if fifo {
		suffix, attributes["FifoQueue"] = ".fifo", "true"
	}
	q.name = base + suffix
	for i, part := range []string{"", "-dead-letters", "-quarantine"} {
		name := base + part + suffix
		out, err := q.client.CreateQueue(t.Context(), &sqs.CreateQueueInput{QueueName: &name, Attributes: attributes})
		if err != nil {
			t.Fatal(err)
		}
		q.queues[i] = *out.QueueUrl
	}
	return q
}

func (q *queue) spec() memberSpec { return memberSpec{Broker: "sqs", URL: q.url, Name: q.name} }

func (s *memberSpec) sqsSource() (driver.Source, error) {
	return semelsqs.New(sqstest.Client(s.URL), s.Name, &semelsqs.Options{PollWait: time.Second})
}

func (q *queue) subscribed(*testing.T) bool { return true }

// publish sends messages in batches of ten, the most that SQS takes.
func (q *queue) publish(ctx context.Context, messages iter.Seq[consume.Message]) error {
	in := &sqs.SendMessageBatchInput{QueueUrl: &q.queues[0]}
	flush := func() error {
		if len(in.Entries) == 0 {
			return nil
		}
		out, err := q.client.SendMessageBatch(ctx, in)
		if err != nil {
			return err
		}
		if len(out.Failed) > 0 {
			return fmt.Errorf("SendMessageBatch: refused %d of %d messages", len(out.Failed), len(in.Entries))
		}
		in.Entries = nil
		return nil
	}
	for m := range messages {
		id := strconv.Itoa(len(in.Entries))
		text, attributes := semelsqs.Encode(m.Headers, m.Body)
		e := types.SendMessageBatchRequestEntry{Id: &id, MessageBody: &text, MessageAttributes: attributes}
		if q.fifo {
			unique := rand.Text() // SQS would drop the duplicates itself
			e.MessageGroupId, e.MessageDeduplicationId = &m.OrderKey, &unique
		}
		if in.Entries = append(in.Entries, e); len(in.Entries) == 10 {
			if err := flush(); err != nil {
				return err
			}
		}
	}
	return flush()
}

func (q *queue) unsettled(t *testing.T) int {
	t.Helper()
	return q.count(t, q.queues[0])
}

func (q *queue) copies(t *testing.T) int {
	t.Helper()
	return q.count(t, q.queues[1]) + q.count(t, q.queues[2])
}

func (q *queue) count(t *testing.T, url string) (n int) {
	t.Helper()
	out, err := q.client.GetQueueAttributes(t.Context(), &sqs.GetQueueAttributesInput{QueueUrl: &url, AttributeNames: []types.QueueAttributeName{"All"}})
	if err != nil {
		t.Fatal(err)
	}
	for _, name := range []string{"ApproximateNumberOfMessages", "ApproximateNumberOfMessagesNotVisible", "ApproximateNumberOfMessagesDelayed"} {
		k, err := strconv.Atoi(out.Attributes[name])
		if err != nil {
			t.Fatalf("%s: %v", name, err)
		}
		n += k
	}
	return n
}

func TestCampaign_SQSProcessesKilled_EachMessageOnce(t *testing.T) {
	if testing.Short() {
		t.Skip("takes seconds of both cores")
	}
	t.Parallel()
	messages, kills := consumetest.LoadSize(10_000, 10)
	for name, fifo := range map[string]bool{"standard": false, "fifo": true} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			load{messages: messages, kills: kills, backlog: 2000, ordered: fifo}.report(t, "SQS (ElasticMQ), "+name+" queue, SQLite", openQueue(t, fifo))
		})
	}
}

func TestCampaign_SQSControlNoDeduplication_DuplicatesTakeEffect(t *testing.T) {
	if testing.Short() {
		t.Skip("takes seconds of both cores")
	}
	t.Parallel()
	messages, kills := consumetest.LoadSize(10_000, 10)
	load{messages: messages / 10, kills: kills / 5, backlog: 2000, unprotected: true}.report(t, "SQS (ElasticMQ), standard queue, SQLite", openQueue(t, false))
}
