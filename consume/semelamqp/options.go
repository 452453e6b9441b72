package semelamqp

import (
	"cmp"
	"errors"
	"fmt"
	"time"

	amqp "github.com/rabbitmq/amqp091-go"
	"github.com/semel-go/semel/consume"
	"github.com/semel-go/semel/consume/driver"
)

// Options configures a Source. Nil and zero fields mean the defaults.
type Options struct {
	// DeadLetters and Quarantine are the queues that copies go to: by default
	// the queue's name and ".dead-letters" or ".quarantine".
	DeadLetters, Quarantine string
	// Declare says which queues the Source makes: by default all except the
	// consumed one.
	Declare Declare
	// Kind is the kind of the queues that it makes: Quorum by default.
	Kind Kind
	// DeliveryLimit is how often the broker delivers a message of a quorum
	// queue that the Source makes, before the broker itself moves it to the
	// dead letters, without a reason. Zero: no limit, because the broker counts
	// each delivery, also of a message that only waited, and the Consumer counts
	// the runs. With a limit, Serve takes no more messages than it has free
	// handlers; set it above MaxAttempts and the number of restarts within a
	// message's life, and do not combine it with OrderKey.
	DeliveryLimit int
	// SingleActive makes the queue with a single active consumer: other members
	// wait until it is gone, so that order per key holds across members.
	SingleActive bool

	// OrderKey returns the order key of a message; nil: no message waits for
	// another. It is called before m.Key is set, and must not panic.
	OrderKey func(m *consume.Message) string
	// Horizon is the greatest age at which the broker may deliver a message,
	// without its retries: the queue's TTL. Zero: driver.Forever. Serve refuses to
	// start if it is longer than the consumer's Retention: see
	// consume.Options.AllowShortRetention.
	Horizon time.Duration
	// Prefetch is how many messages the broker sends before their acks, at most
	// 65535. Zero: as many as the Consumer takes, its InFlight; with an OrderKey
	// 17 times as many, because messages that wait for an earlier one are kept
	// besides: 16 times InFlight, the default of consume.Options.Waiting. The first Next
	// says how many the Consumer takes. Set Prefetch to InFlight and Waiting together if
	// Waiting is larger or a wrapper of the Source asks for fewer; otherwise the broker
	// stops sending before Waiting is reached. Set it also if messages are large. In a loop
	// other than Serve's, set at least the number of messages in hand.
	Prefetch int
	// Config is for the connections: TLS, SASL, heartbeat, properties. Recovery
	// must be nil, because it moves delivery tags to other channels, where they
	// mean other messages.
	Config amqp.Config
}

// Declare says which missing queues a Source makes. Existing queues stay as
// they are.
type Declare uint8

// The choices.
const (
	// DeclareCopies makes the queues of retries and copies. The consumed queue
	// must exist.
	DeclareCopies Declare = iota
	// DeclareAll makes the consumed queue, too; the broker sends messages that
	// it drops itself to the dead letters. An existing queue with other
	// arguments is an error.
	DeclareAll
	// DeclareNothing only looks that they are there. Where a retry's queue is
	// missing, the retry waits in the consumer.
	DeclareNothing
)

// Kind is a kind of queue.
type Kind string

// The kinds.
const (
	// Quorum queues are replicated, count deliveries, and pass retries on at
	// least once.
	Quorum Kind = "quorum"
	// Classic queues are on one node. They pass a retry on at most once: a node
	// that dies at that moment may lose it.
	Classic Kind = "classic"
)

func (o *Options) withDefaults(queue string) Options {
	var d Options
	if o != nil {
		d = *o
	}
	d.DeadLetters = cmp.Or(d.DeadLetters, queue+".dead-letters")
	d.Quarantine = cmp.Or(d.Quarantine, queue+".quarantine")
	d.Kind = cmp.Or(d.Kind, Quorum)
	d.Horizon = cmp.Or(d.Horizon, driver.Forever)
	return d
}

// longestName is the limit on the name of a queue or of a header, in bytes.
const longestName = 255

// check reports every mistake.
func (o *Options) check(url, queue string) error {
	var errs []error
	bad := func(format string, args ...any) { errs = append(errs, fmt.Errorf(format, args...)) }
	if _, err := amqp.ParseURI(url); err != nil { // err is not shown: it may hold the password
		bad("url: cannot be read; it must be like amqp://user:password@host:5672/vhost, with reserved characters percent-encoded")
	}
	if queue == "" {
		bad("queue: is empty")
	}
	for field, name := range map[string]string{"queue": retryName(queue, lastLevel), "Options.DeadLetters": o.DeadLetters, "Options.Quarantine": o.Quarantine} {
		if len(name) > longestName {
			bad("%s: gives a queue a name of %d bytes; at most %d are allowed", field, len(name), longestName)
		}
	}
	if o.DeadLetters == queue || o.Quarantine == queue {
		bad("Options.DeadLetters, Options.Quarantine: name the queue that is consumed, so copies would be consumed, too; name other queues")
	}
	if o.Declare > DeclareNothing {
		bad("Options.Declare: is %d; it must be DeclareCopies, DeclareAll or DeclareNothing", o.Declare)
	}
	if o.Kind != Quorum && o.Kind != Classic {
		bad("Options.Kind: is %q; it must be Quorum or Classic", o.Kind)
	}
	if o.DeliveryLimit < 0 || o.DeliveryLimit > 0 && (o.Kind != Quorum || o.Declare != DeclareAll) {
		bad("Options.DeliveryLimit: is %d; it must be positive, and needs Kind Quorum and DeclareAll", o.DeliveryLimit)
	}
	if o.DeliveryLimit > 0 && o.OrderKey != nil {
		bad("Options.DeliveryLimit: is %d; with an OrderKey messages wait for others, and the broker counts that, so leave it zero", o.DeliveryLimit)
	}
	if o.SingleActive && o.Declare != DeclareAll {
		bad("Options.SingleActive: needs DeclareAll; make an operator's queue with the argument x-single-active-consumer")
	}
	if o.Horizon < 0 {
		bad("Options.Horizon: is %v; it must not be negative", o.Horizon)
	}
	if o.Prefetch < 0 || o.Prefetch > maxPrefetch {
		bad("Options.Prefetch: is %d; it must be from 0 to %d", o.Prefetch, maxPrefetch)
	}
	if o.Config.Recovery != nil {
		bad("Options.Config.Recovery: is set; it must be nil, because the Source reconnects by itself")
	}
	return errors.Join(errs...)
}
