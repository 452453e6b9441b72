package semelnats

import (
	"errors"
	"fmt"
	"time"

	"github.com/nats-io/nats.go/jetstream"
	"github.com/semel-go/semel/consume"
)

// Options configures a Source. Nil and zero fields mean the defaults.
type Options struct {
	// DeadLetters and Parked are the subjects that copies are published to: by
	// default "dead-letters." and "quarantine." before the consumer's name. A
	// stream must take them, or Serve does not start.
	DeadLetters, Quarantine string
	// OrderKey says which messages wait for each other. Nil: none does. It is
	// called before m.Key is set, and must not panic.
	OrderKey func(m *consume.Message) string
	// PollWait is how long one pull waits for a message: 1 s by default, at
	// most 30 s. Serve ends as much later.
	PollWait time.Duration
	// Terminate ends messages that were copied by Term with the reason, of
	// which the server publishes an advisory, instead of by a double ack. It
	// is not answered: if it is lost, the message comes again, and so does the
	// copy, with the same driver.LetterID.
	Terminate bool
	// MaxDeliver accepts a consumer with a limit of deliveries: run
	// WatchMaxDeliver beside Serve, or messages are lost.
	MaxDeliver bool
}

func (o *Options) withDefaults(consumer string) Options {
	var d Options
	if o != nil {
		d = *o
	}
	if d.DeadLetters == "" {
		d.DeadLetters = "dead-letters." + consumer
	}
	if d.Quarantine == "" {
		d.Quarantine = "quarantine." + consumer
	}
	if d.PollWait == 0 {
		d.PollWait = time.Second
	}
	return d
}

// check reports all that is wrong with the options and the consumer.
func (o *Options) check(c *jetstream.ConsumerConfig) error {
	var errs []error
	bad := func(format string, args ...any) { errs = append(errs, fmt.Errorf(format, args...)) }
	if o.PollWait < 10*time.Millisecond || o.PollWait > 30*time.Second {
		bad("PollWait: is %v; it must be from 10ms to 30s", o.PollWait)
	}
	if c.AckPolicy != jetstream.AckExplicitPolicy {
		bad("the consumer's AckPolicy: is %v; it must be explicit", c.AckPolicy)
	}
	if c.MaxDeliver > 0 && !o.MaxDeliver {
		bad("the consumer's MaxDeliver: is %d, and after it the server drops a message; make it -1, or set Options.MaxDeliver and run WatchMaxDeliver", c.MaxDeliver)
	}
	if c.PriorityPolicy != jetstream.PriorityPolicyNone {
		bad("the consumer's PriorityPolicy: is set; it must not be, for the server refuses pulls that are of no priority group")
	}
	if c.HeadersOnly {
		bad("the consumer's HeadersOnly: is set; the handler needs the body")
	}
	return errors.Join(errs...)
}
