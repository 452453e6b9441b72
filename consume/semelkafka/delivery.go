package semelkafka

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/semel-go/semel/consume"
	"github.com/semel-go/semel/consume/driver"
	"github.com/semel-go/semel/store"
	"github.com/twmb/franz-go/pkg/kerr"
)

// delivery is one delivery of a record.
type delivery struct {
	s *Source
	p *partition
	item
	over bool // guarded by Source.mu
}

// Message implements driver.Delivery.
func (d *delivery) Message() *consume.Message { return d.m }

// Revoked implements driver.Delivery.
func (d *delivery) Revoked() <-chan struct{} { return d.p.revoked }

// Extend implements driver.Delivery. It does nothing: the client's heartbeats
// keep all partitions.
func (d *delivery) Extend(context.Context) error { return nil }

// errRevoked is the error of a delivery whose partition belongs to another
// member.
var errRevoked = fmt.Errorf("semelkafka: the partition is not this member's any more: %w", driver.ErrGone)

// Ack implements driver.Delivery. When all lower offsets are acked, the offset
// is committed within CommitEvery, and before the partition is handed over.
// After a crash before that, the message comes again, as a duplicate.
func (d *delivery) Ack(context.Context) error {
	return d.end(func() {
		if d.p.mark.done(d.r.Offset) {
			d.p.dirty, d.p.since, d.p.from = true, time.Now(), d.p.mark.after
			d.s.nudge()
		}
	})
}

// Nak implements driver.Delivery. Kafka does not redeliver a message while this
// member has the partition. So the next Next returns it, unless the partition
// is being taken away.
func (d *delivery) Nak(context.Context, time.Duration) error {
	return d.end(func() {
		if !d.p.leaving {
			m := *d.m
			m.Key = ""
			d.p.back(item{r: d.r, m: &m, from: d.from})
		}
	})
}

func (d *delivery) end(f func()) error {
	d.s.mu.Lock()
	defer d.s.mu.Unlock()
	if !d.over {
		d.over = true
		d.p.unfinished--
		d.s.taken--
		defer d.s.deliveryEnded(d.p)
	}
	if d.p.gone {
		return errRevoked
	}
	f()
	return nil
}

// wake makes Next look again, if it waits.
func (s *Source) wake() {
	select {
	case s.changed <- struct{}{}:
	default:
	}
}

// deliveryEnded wakes the goroutines that wait for the end of a delivery. The
// caller holds mu.
func (s *Source) deliveryEnded(p *partition) {
	s.wake()
	if p.leaving {
		close(s.ended)
		s.ended = make(chan struct{})
	}
}

// Forward implements driver.Delivery. It returns nil after all in-sync replicas
// have stored the copy, in a topic that keeps it.
func (d *delivery) Forward(ctx context.Context, to driver.Action, headers []store.Header) error {
	topic := d.s.opt.DeadLetters
	if to == driver.Quarantine {
		topic = d.s.opt.Quarantine
	}
	d.s.mu.Lock()
	copies, gone := d.s.copies, d.p.gone
	d.s.mu.Unlock()
	if gone { // the partition's new member sends the copy
		return errRevoked
	}
	err := d.s.places.Check(ctx, topic, func(ctx context.Context) error { return checkCopies(ctx, copies.client, topic) })
	if err == nil {
		err = copies.produce(ctx, letter(topic, d.r, headers))
	}
	if errors.Is(err, kerr.MessageTooLarge) { // again without the error text, usually the longest header
		err = copies.produce(ctx, letter(topic, d.r, slices.DeleteFunc(slices.Clone(headers), func(h store.Header) bool { return h.Name == driver.LetterError })))
	}
	if errors.Is(err, kerr.MessageTooLarge) {
		err = fmt.Errorf("is larger than the topic's max.message.bytes, also when it is compressed; raise the limit, which was %d at the start, with: "+
			"kafka-configs.sh --alter --entity-type topics --entity-name %s --add-config max.message.bytes=BYTES: %w", d.s.limit(topic), topic, err)
	}
	if err != nil {
		return fmt.Errorf("semelkafka: copy of %d bytes to %q: %w", len(d.r.Value), topic, err)
	}
	return nil
}

func (s *Source) limit(topic string) int32 {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.limits[topic]
}

// Waits implements driver.Waiter.
func (d *delivery) Waits(waits bool) {
	d.s.mu.Lock()
	defer d.s.mu.Unlock()
	if waits {
		d.p.waiting++
	} else {
		d.p.waiting--
	}
}
