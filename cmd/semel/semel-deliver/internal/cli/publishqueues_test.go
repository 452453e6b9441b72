package cli

import (
	"context"
	"fmt"
	"net/http"
	"strconv"
	"strings"
	"testing"

	"github.com/aws/aws-sdk-go-v2/service/sqs"
	"github.com/aws/aws-sdk-go-v2/service/sqs/types"
	amqp "github.com/rabbitmq/amqp091-go"

	"github.com/semel-go/semel/consume/semelamqp"
	"github.com/semel-go/semel/consume/semelamqp/amqptest"
	"github.com/semel-go/semel/consume/semelsqs/sqstest"
	"github.com/semel-go/semel/outbox"
)

func toRabbit(t *testing.T) *destination {
	s := amqptest.Shared(t)
	conn, err := amqp.Dial(s.URL())
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = conn.Close() })
	ch, err := conn.Channel()
	if err != nil {
		t.Fatal(err)
	}
	name := fmt.Sprint("published-", queues.Add(1))
	if _, err := ch.QueueDeclare(name, true, false, false, false, nil); err != nil {
		t.Fatal(err)
	}
	deliveries, err := ch.Consume(name, "", true, true, false, false, nil)
	if err != nil {
		t.Fatal(err)
	}
	d := &destination{topic: name, args: []string{"--to", s.URL()}}
	go func() {
		for m := range deliveries {
			d.add(fmt.Sprint(m.Headers[semelamqp.OrderKeyHeader]), m.MessageId)
		}
	}()
	return d
}

func toSQS(t *testing.T) *destination {
	endpoint := sqstest.URL(t)
	client := sqstest.Client(endpoint)
	name := fmt.Sprintf("published-%d.fifo", queues.Add(1))
	out, err := client.CreateQueue(t.Context(), &sqs.CreateQueueInput{QueueName: &name, Attributes: map[string]string{"FifoQueue": "true"}})
	if err != nil {
		t.Fatal(err)
	}
	d := &destination{topic: name, args: []string{"--to", "sqs://?region=us-east-1&endpoint=" + endpoint}}
	ctx, stop := context.WithCancel(context.Background())
	done := make(chan struct{})
	go func() {
		defer close(done)
		for ctx.Err() == nil {
			got, err := client.ReceiveMessage(ctx, &sqs.ReceiveMessageInput{QueueUrl: out.QueueUrl, MaxNumberOfMessages: 10, WaitTimeSeconds: 1,
				MessageAttributeNames: []string{"All"}, MessageSystemAttributeNames: []types.MessageSystemAttributeName{"MessageGroupId"}})
			if err != nil {
				continue
			}
			for _, m := range got.Messages {
				d.add(m.Attributes["MessageGroupId"], *m.MessageAttributes[outbox.KeyHeader].StringValue)
				_, _ = client.DeleteMessage(ctx, &sqs.DeleteMessageInput{QueueUrl: out.QueueUrl, ReceiptHandle: m.ReceiptHandle})
			}
		}
	}()
	t.Cleanup(func() {
		stop()
		<-done
	})
	return d
}

func toWebhook(t *testing.T) *destination {
	d := &destination{topic: "orders"}
	server := serveHTTP(t, func(w http.ResponseWriter, r *http.Request) {
		id, _ := strconv.Unquote(r.Header.Get("Idempotency-Key"))
		key, _, _ := strings.Cut(id, "-")
		d.add(key, id)
	})
	d.args = []string{"--to", server + "/hook?tenant=a"}
	return d
}
