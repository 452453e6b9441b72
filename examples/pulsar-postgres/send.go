package main

import (
	"context"
	"encoding/json"

	"github.com/apache/pulsar-client-go/pulsar"

	"github.com/semel-go/semel/consume"
)

// send publishes orders, and returns nil when the broker has stored them. A property has
// the order's ID as the idempotency key, and the message's key is the item, so that the
// orders of an item stay in order.
func send(ctx context.Context, c *config, orders ...order) error {
	client, err := c.connect()
	if err != nil {
		return err
	}
	defer client.Close()
	// A key-shared subscription needs batches that do not mix keys.
	producer, err := client.CreateProducer(pulsar.ProducerOptions{Topic: topic, BatcherBuilderType: pulsar.KeyBasedBatchBuilder})
	if err != nil {
		return err
	}
	defer producer.Close()
	answers := make(chan error, len(orders))
	for _, o := range orders {
		body, err := json.Marshal(o)
		if err != nil {
			return err
		}
		m := &pulsar.ProducerMessage{Payload: body, Key: o.Item, Properties: map[string]string{consume.KeyHeader: o.ID}}
		producer.SendAsync(ctx, m, func(_ pulsar.MessageID, _ *pulsar.ProducerMessage, err error) { answers <- err })
	}
	for range orders {
		if err := <-answers; err != nil {
			return err // send the orders again
		}
	}
	return nil
}
