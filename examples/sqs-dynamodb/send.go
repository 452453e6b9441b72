package main

import (
	"context"
	"encoding/json"
	"errors"

	"github.com/aws/aws-sdk-go-v2/service/sqs"

	"github.com/semel-go/semel/consume"
	"github.com/semel-go/semel/consume/semelsqs"
	"github.com/semel-go/semel/store"
)

// send sends orders, and returns nil when SQS has all of them. The attribute
// "idempotency-key" has the order's ID, so that an order that is sent again has the same
// key.
func send(ctx context.Context, c *config, orders ...order) error {
	name := queue
	out, err := c.sqs.GetQueueUrl(ctx, &sqs.GetQueueUrlInput{QueueName: &name})
	if err != nil {
		return errors.Join(errors.New(`there is no queue "orders" yet: run create`), err)
	}
	for _, o := range orders {
		body, err := json.Marshal(o)
		if err != nil {
			return err
		}
		text, attributes := semelsqs.Encode([]store.Header{{Name: consume.KeyHeader, Value: o.ID}}, body)
		if _, err := c.sqs.SendMessage(ctx, &sqs.SendMessageInput{QueueUrl: out.QueueUrl, MessageBody: &text, MessageAttributes: attributes}); err != nil {
			return err
		}
	}
	return nil
}
