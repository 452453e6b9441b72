package semelsqs_test

import (
	"context"
	"testing"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/sqs"
	"github.com/aws/aws-sdk-go-v2/service/sqs/types"

	"github.com/semel-go/semel/consume/semelsqs"
	"github.com/semel-go/semel/consume/semelsqs/sqstest"
	"github.com/semel-go/semel/outbox"
	"github.com/semel-go/semel/outbox/outboxtest"
)

// arrived receives and deletes n messages of the queue.
func (b *broker) arrived(t testing.TB, n int) (all []outboxtest.Arrived) {
	t.Helper()
	ctx, cancel := context.WithTimeout(context.Background(), patience)
	defer cancel()
	for len(all) < n {
		out, err := b.client.ReceiveMessage(ctx, &sqs.ReceiveMessageInput{
			QueueUrl: &b.queue, MaxNumberOfMessages: 10, MessageAttributeNames: []string{"All"}, WaitTimeSeconds: 1,
			MessageSystemAttributeNames: []types.MessageSystemAttributeName{types.MessageSystemAttributeNameAll},
		})
		if err != nil {
			t.Fatal(err)
		}
		for _, m := range out.Messages {
			decoded := semelsqs.Decode(b.name, &m)
			a := outboxtest.Arrived{Headers: decoded.Headers, Body: decoded.Body, OrderKey: m.Attributes["MessageGroupId"]}
			if !b.fifo {
				a.OrderKey = ""
			}
			all = append(all, a)
			if _, err := b.client.DeleteMessage(ctx, &sqs.DeleteMessageInput{QueueUrl: &b.queue, ReceiptHandle: aws.String(*m.ReceiptHandle)}); err != nil {
				t.Fatal(err)
			}
		}
	}
	return all
}

func TestSink_FIFO_MessagesArriveInOrderForEachKey(t *testing.T) {
	t.Parallel()
	b := open(t, true)
	sink, err := semelsqs.NewSink(b.client)
	if err != nil {
		t.Fatal(err)
	}
	outboxtest.RunSink(t, outboxtest.Destination{Sink: sink, Topic: b.name, Arrived: b.arrived})
	again := []outbox.Message{{Topic: b.name, OrderKey: "eve", ID: "1"}, {Topic: b.name, OrderKey: "eve", ID: "1"}, {Topic: b.name, OrderKey: "e v e", ID: "2"}}
	sink.Publish(t.Context(), again, func(i int, err error) {
		if (i == 2) != outbox.IsPoison(err) || i < 2 && err != nil {
			t.Errorf("message %d: %v", i, err)
		}
	})
	b.arrived(t, 1)
	if n := b.Unsettled(t); n != 0 {
		t.Errorf("the queue has %d messages more; the repeat was not dropped", n)
	}
}

func TestSink_Standard_MessagesArrive(t *testing.T) {
	t.Parallel()
	b := open(t, false)
	sink, err := semelsqs.NewSink(b.client)
	if err != nil {
		t.Fatal(err)
	}
	outboxtest.RunSink(t, outboxtest.Destination{Sink: sink, Topic: b.queue, LosesOrder: true, Arrived: func(t testing.TB, n int) []outboxtest.Arrived {
		all := b.arrived(t, n)
		for i := range all {
			all[i].OrderKey = keyOf(all[i].ID())
		}
		return all
	}})
}

func TestSink_MessageTooLarge_IsPoison(t *testing.T) {
	t.Parallel()
	b := open(t, false)
	s := newSpy(t, b.url, false)
	s.tooLarge = 1
	sink, err := semelsqs.NewSink(sqstest.Client(s.url))
	if err != nil {
		t.Fatal(err)
	}
	for _, poison := range []bool{true, false} {
		sink.Publish(t.Context(), []outbox.Message{{Topic: b.name, ID: "1"}}, func(_ int, err error) {
			if outbox.IsPoison(err) != poison || !poison && err != nil {
				t.Errorf("error %v, want poison %v", err, poison)
			}
		})
	}
}

// keyOf is the order key of a message of RunSink: a standard queue does not keep it.
func keyOf(id string) string {
	for i := range id {
		if id[i] == '-' {
			return id[:i]
		}
	}
	return ""
}
