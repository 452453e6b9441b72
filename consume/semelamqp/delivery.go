package semelamqp

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"time"

	amqp "github.com/rabbitmq/amqp091-go"
	"github.com/semel-go/semel/consume"
	"github.com/semel-go/semel/consume/driver"
	"github.com/semel-go/semel/store"
)

// delivery is one delivery of a message.
type delivery struct {
	s   *Source
	l   *link
	raw amqp.Delivery
	own *consume.Message

	mu    sync.Mutex
	acked bool
	back  bool // it was given back
	// sent are the copies on their way, by queue. A copy whose confirm is late
	// is waited for, not sent again.
	sent map[string]*sent
}

// Message implements driver.Delivery.
func (d *delivery) Message() *consume.Message { return d.own }

// Revoked implements driver.Delivery. It is closed with the channel, because
// the broker gives the message to another consumer then.
func (d *delivery) Revoked() <-chan struct{} { return d.l.over }

// Extend implements driver.Delivery. It does nothing: the channel keeps a
// message until the broker's consumer_timeout, 30 minutes by default.
func (d *delivery) Extend(context.Context) error { return nil }

// Ack implements driver.Delivery. The broker does not answer an ack. If the ack
// is lost, so is the channel, and the message comes again.
func (d *delivery) Ack(context.Context) error {
	d.mu.Lock()
	defer d.mu.Unlock()
	return d.ack()
}

// ack acks once, because the broker closes a channel that acks twice.
func (d *delivery) ack() error {
	if d.acked {
		return nil
	}
	if err := d.gone(); err != nil {
		return err
	}
	if err := d.raw.Ack(false); err != nil {
		d.l.end(err)
		return fmt.Errorf("%w: %w", driver.ErrGone, err)
	}
	d.acked = true
	d.l.out.Add(-1)
	return nil
}

// gone returns the error of a call after the delivery's end.
func (d *delivery) gone() error {
	if d.back {
		return fmt.Errorf("%w: it was given back", driver.ErrGone)
	}
	if d.l.isOver() {
		return fmt.Errorf("%w: %w", driver.ErrGone, d.l.err)
	}
	return nil
}

// Nak implements driver.Delivery. With a delay it sends a copy to a retry
// queue, and acks. Without one the message goes back to the head of its queue.
func (d *delivery) Nak(ctx context.Context, delay time.Duration) error {
	d.mu.Lock()
	defer d.mu.Unlock()
	if d.acked {
		return nil
	}
	if err := d.gone(); err != nil {
		return err
	}
	if delay <= 0 && d.own.OrderKey != "" {
		d.back = true
		d.l.out.Add(-1)
		d.l.putBack(d.raw.DeliveryTag)
		return nil
	}
	if delay <= 0 {
		if err := d.raw.Nack(false, true); err != nil {
			d.l.end(err)
			return fmt.Errorf("%w: %w", driver.ErrGone, err)
		}
		d.back = true
		d.l.out.Add(-1)
		return nil
	}
	const retry = "" // whatever its delay, one copy is enough
	if err := d.copy(ctx, retry, d.s.queues.retry(level(delay)), func() amqp.Publishing { return retryOf(&d.raw) }); err != nil {
		return err
	}
	return d.ack()
}

// Forward implements driver.Delivery. It returns nil after the broker has
// confirmed that the copy is in its queue.
func (d *delivery) Forward(ctx context.Context, to driver.Action, headers []store.Header) error {
	d.mu.Lock()
	defer d.mu.Unlock()
	if err := d.gone(); err != nil {
		return err
	}
	name := d.s.opt.DeadLetters
	if to == driver.Quarantine {
		name = d.s.opt.Quarantine
	}
	return d.copy(ctx, name, d.s.queues.letters(name), func() amqp.Publishing { return letterOf(&d.raw, headers) })
}

// copy sends a copy, or waits for one on its way. If its queue was deleted,
// copy makes it again, once.
func (d *delivery) copy(ctx context.Context, slot string, q queue, m func() amqp.Publishing) error {
	fail := func(err error) error {
		return fmt.Errorf("semelamqp: copy of %d bytes to queue %q: %w", len(d.raw.Body), q.name, err)
	}
	for again := range 2 {
		c := d.sent[slot]
		if c == nil || c.failed() { // it failed after an earlier call had given up
			if d.sent == nil {
				d.sent = map[string]*sent{}
			}
			c = d.s.copies.send(ctx, q, m())
			d.sent[slot] = c
		}
		err := c.wait(ctx)
		if err == nil {
			return nil
		}
		select {
		case <-c.done:
			delete(d.sent, slot)
		default: // it may still be confirmed
			return fail(err)
		}
		if !errors.Is(err, errUnroutable) || !q.make || again == 1 {
			return fail(err)
		}
	}
	return nil
}
