package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"time"

	amqp "github.com/rabbitmq/amqp091-go"

	"github.com/semel-go/semel/consume"
)

// send publishes orders, and returns nil when the broker has confirmed them.
// The header has the order's ID as the idempotency key.
func send(ctx context.Context, c *config, orders ...order) (err error) {
	conn, err := amqp.Dial(c.amqp)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, conn.Close()) }()
	ch, err := conn.Channel()
	if err != nil {
		return err
	}
	if err := ch.Confirm(false); err != nil {
		return err
	}
	returned := ch.NotifyReturn(make(chan amqp.Return, 1)) // comes before the confirm
	for _, o := range orders {
		body, err := json.Marshal(o)
		if err != nil {
			return err
		}
		confirm, err := ch.PublishWithDeferredConfirmWithContext(ctx, "", "orders", true, false, amqp.Publishing{
			Headers: amqp.Table{consume.KeyHeader: o.ID}, ContentType: "application/json", DeliveryMode: amqp.Persistent,
			MessageId: o.ID, Timestamp: time.Now(), Body: body,
		})
		if err != nil {
			return err
		}
		ok, err := confirm.WaitContext(ctx)
		select {
		case <-returned:
			return errors.New("there is no queue \"orders\" yet: start serve, which makes it")
		default:
		}
		if err != nil || !ok {
			return errors.Join(err, fmt.Errorf("%s: not confirmed; send it again", o.ID))
		}
	}
	return nil
}
