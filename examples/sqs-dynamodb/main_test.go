package main

import (
	"errors"
	"fmt"
	"os"
	"strconv"
	"testing"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb"
	"github.com/aws/aws-sdk-go-v2/service/sqs"
	"github.com/aws/aws-sdk-go-v2/service/sqs/types"

	"github.com/semel-go/semel/consume/semelsqs/sqstest"
	"github.com/semel-go/semel/examples/internal/exampletest"
	"github.com/semel-go/semel/store/dynamostore/dynamotest"
)

func TestMain(m *testing.M) { os.Exit(sqstest.Main(withDynamo{m})) }

// withDynamo runs the tests, and then removes the emulator of DynamoDB.
type withDynamo struct{ tests *testing.M }

func (w withDynamo) Run() int { return dynamotest.Main(w.tests) }

// left counts the messages of a queue, those that are in work included.
func left(t *testing.T, c *config, name string) (n int) {
	t.Helper()
	url, err := c.sqs.GetQueueUrl(t.Context(), &sqs.GetQueueUrlInput{QueueName: &name})
	if err != nil {
		t.Fatal(err)
	}
	out, err := c.sqs.GetQueueAttributes(t.Context(), &sqs.GetQueueAttributesInput{QueueUrl: url.QueueUrl, AttributeNames: []types.QueueAttributeName{"All"}})
	if err != nil {
		t.Fatal(err)
	}
	for _, attribute := range []string{"ApproximateNumberOfMessages", "ApproximateNumberOfMessagesNotVisible"} {
		count, err := strconv.Atoi(out.Attributes[attribute])
		if err != nil {
			t.Fatal(err)
		}
		n += count
	}
	return n
}

func TestServe_OrderSentAgain_IsKeptOnce(t *testing.T) {
	c := &config{sqs: sqstest.Client(sqstest.URL(t)), dynamo: dynamotest.Client(dynamotest.URL(t))}
	if err := errors.Join(c.run(t.Context(), "create"), c.run(t.Context(), "create")); err != nil {
		t.Fatal(err)
	}
	first := exampletest.Serve(t, c.run)
	exampletest.Serve(t, c.run) // shares the queue
	var many []order
	for n := range 50 {
		many = append(many, order{fmt.Sprint("more-", n), "book", 1})
	}
	if err := errors.Join(c.run(t.Context(), "send"), send(t.Context(), c, append(many[:25:25], many...)...)); err != nil {
		t.Fatal(err)
	}
	first() // the other member takes over
	if err := errors.Join(c.run(t.Context(), "send"), send(t.Context(), c, many...), send(t.Context(), c, order{"order-4", "pen", 1000})); err != nil {
		t.Fatal(err)
	}
	exampletest.WaitFor(t, "all is handled", func() bool { return left(t, c, queue) == 0 && left(t, c, queue+"-dead-letters") == 1 })

	out, err := c.dynamo.Scan(t.Context(), &dynamodb.ScanInput{TableName: aws.String(shop), ConsistentRead: aws.Bool(true)})
	if err != nil {
		t.Fatal(err)
	}
	books, bookErr := c.stock(t.Context(), "book")
	pens, penErr := c.stock(t.Context(), "pen")
	if err := errors.Join(bookErr, penErr); err != nil || len(out.Items) != 53+2 || books != 100-53 || pens != 90 {
		t.Errorf("%d orders, %d books and %d pens remain; want 53, 47 and 90: %v", len(out.Items)-2, books, pens, err)
	}
}

func TestRun_NoVerb_Error(t *testing.T) {
	if err := (&config{}).run(t.Context(), ""); err == nil {
		t.Error("run without a verb returned no error")
	}
}
