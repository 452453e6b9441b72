package semelnats

import (
	"cmp"
	"errors"
	"fmt"
	"time"

	"github.com/nats-io/nats.go/jetstream"
	"github.com/semel-go/semel/consume"
)

// Options configures a Source. Nil and zero fields mean the defaults.
type Options struct {
	// DeadLetters and Quarantine are the subjects that copies are published to:
	// by default "dead-letters." or "quarantine." and the consumer's name.
	// Streams must take them, or Serve does not start.
	DeadLetters, Quarantine string
	// OrderKey returns the order key of a message; nil: no message waits for
	// another. It is called before m.Key is set, and must not panic.
	OrderKey func(m *consume.Message) string
	// PollWait is how long one pull waits for a message: 1 s by default, from
	// 10 ms to 30 s. Serve may take that much longer to end.
	PollWait time.Duration
	// MaxDeliver accepts a consumer with a limit of deliveries. Run
	// WatchMaxDeliver beside Serve then, or messages are lost. The server counts
	// each delivery, also of a message that only waited, so Serve takes no more
	// messages than it has free handlers. OrderKey must be nil then, because
	// with it messages wait for others. Make the limit greater than MaxAttempts
	// and the number of restarts within a message's life.
	MaxDeliver bool
}

func (o *Options) withDefaults(consumer string) Options {
	var d Options
	if o != nil {
		d = *o
	}
	d.DeadLetters = cmp.Or(d.DeadLetters, "dead-letters."+consumer)
	d.Quarantine = cmp.Or(d.Quarantine, "quarantine."+consumer)
	d.PollWait = cmp.Or(d.PollWait, time.Second)
	return d
}

// check reports every mistake in the options and in the consumer.
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
		bad("the consumer's MaxDeliver: is %d, after which the server drops a message; set it to -1, or set Options.MaxDeliver and run WatchMaxDeliver", c.MaxDeliver)
	}
	if c.MaxDeliver > 0 && o.OrderKey != nil {
		bad("the consumer's MaxDeliver: is %d; with an OrderKey messages wait for others, and the server counts that; set it to -1", c.MaxDeliver)
	}
	if c.PriorityPolicy != jetstream.PriorityPolicyNone {
		bad("the consumer's PriorityPolicy: is set; clear it, because the server refuses pulls without a priority group")
	}
	if c.HeadersOnly {
		bad("the consumer's HeadersOnly: is set; clear it, because the handler needs the body")
	}
	return errors.Join(errs...)
}
