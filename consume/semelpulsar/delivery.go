package semelpulsar

import (
	"context"
	"fmt"
	"time"

	"github.com/apache/pulsar-client-go/pulsar"
	"github.com/semel-go/semel/consume"
	"github.com/semel-go/semel/consume/driver"
	"github.com/semel-go/semel/store"
)

// delivery is one delivery of a message.
type delivery struct {
	l       *link
	own     *consume.Message
	raw     pulsar.Message
	place   place
	index   int32            // in its batch
	revoked chan struct{}    // nil: the broker takes no message away
	id      pulsar.MessageID // of the newest copy; guarded by unsettled.mu
	isOver  bool             // likewise
}

// Message implements driver.Delivery.
func (d *delivery) Message() *consume.Message { return d.own }

// Revoked implements driver.Delivery: it is closed when another member of a failover
// subscription becomes the active one.
func (d *delivery) Revoked() <-chan struct{} { return d.revoked }

// Ack implements driver.Delivery. It returns after the broker has answered. The broker
// accepts an ack of a message that another member has by then. That is safe, because the
// outcome is stored.
func (d *delivery) Ack(ctx context.Context) error {
	for {
		id := d.l.unsettled.newest(d)
		if err := d.l.acks.add(ctx, id); err != nil {
			return d.l.explain(err)
		}
		// If a newer copy of the batch has come meanwhile, the broker may wait for the
		// ack of that copy.
		if d.l.unsettled.acked(d, id) {
			d.l.closeIfDone(ctx)
			return nil
		}
	}
}

// Nak implements driver.Delivery. The message goes back after the delay, and after the
// other messages of its batch are settled, because Pulsar sends a batch again as a whole.
func (d *delivery) Nak(ctx context.Context, delay time.Duration) error {
	if d.l.isAbandoned() {
		return d.l.explain(errAbandoned)
	}
	d.l.unsettled.giveBack(d, delay)
	d.l.closeIfDone(ctx)
	return nil
}

// Extend implements driver.Delivery: Pulsar leaves a message with a connected consumer
// without limit.
func (d *delivery) Extend(context.Context) error { return nil }

// Forward implements driver.Delivery. It returns nil after the topic has stored the copy, and
// the topic has a subscription that keeps it.
func (d *delivery) Forward(ctx context.Context, to driver.Action, headers []store.Header) error {
	if d.l.isAbandoned() {
		return d.l.explain(errAbandoned)
	}
	topic := d.l.s.opt.DeadLetters
	if to == driver.Quarantine {
		topic = d.l.s.opt.Quarantine
	}
	err := d.l.s.places.Check(ctx, topic, func(ctx context.Context) error { return d.l.s.keepCopiesSoon(ctx, topic) })
	if err == nil {
		err = d.l.copies.send(ctx, topic, letter(d.raw, headers))
	}
	if err != nil {
		return fmt.Errorf("semelpulsar: copy of message %s, %d bytes, to topic %q: %w", d.own.Origin.ID, len(d.own.Body), topic, err)
	}
	return nil
}
