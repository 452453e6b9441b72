package semelamqp

import (
	"errors"
	"fmt"
	"time"

	amqp "github.com/rabbitmq/amqp091-go"
	"github.com/semel-go/semel/consume"
	"github.com/semel-go/semel/consume/driver"
)

// Options configures a Source. Nil and zero fields mean the defaults.
type Options struct {
	// DeadLetters and Parked are the queues that copies go to: by default the
	// queue's name and ".dead-letters" or ".quarantine".
	DeadLetters, Quarantine string
	// Declare says which queues the Source makes: by default all but the one
	// that it consumes.
	Declare Declare
	// Kind is what kind of queues it makes: by default Quorum.
	Kind Kind
	// DeliveryLimit is how often the broker delivers a message of a quorum
	// queue that is made here before it moves it to the dead letters by
	// itself, which no reason is told of. Zero: what the broker does by
	// default, which is 20 since RabbitMQ 4, and no limit before.
	DeliveryLimit int
	// SingleActive makes the queue with a single active consumer: the other
	// members wait until it is gone, and so order per key holds across them.
	SingleActive bool

	// OrderKey says which messages wait for each other. Nil: none does. It is
	// called before m.Key is set, and must not panic.
	OrderKey func(m *consume.Message) string
	// Horizon is the greatest age at which the broker may deliver a message,
	// if the queue has a TTL, retries not counted. Zero: driver.Forever.
	Horizon time.Duration
	// Prefetch is how many messages the broker sends ahead of their acks. Zero:
	// as many as the Consumer takes, its InFlight. At most 65535; in a loop that
	// is not Serve's not less than what it has in work.
	Prefetch int
	// Config is for the connections: TLS, SASL, heartbeat, properties. Recovery
	// must be nil, for it moves delivery tags to channels that they are not of.
	Config amqp.Config
}

// Declare says which queues a Source makes if they are not there. Those that
// are there stay as they are.
type Declare uint8

// The choices.
const (
	// DeclareCopies makes the queues of retries and copies. The consumed one
	// is the operator's, and must be there.
	DeclareCopies Declare = iota
	// DeclareAll makes the consumed queue, too, with what the broker itself
	// drops going to the dead letters. One that is there with other arguments
	// is an error.
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
	// Classic queues are on one node. A retry is passed on at most once: a
	// node that dies in that moment may lose it.
	Classic Kind = "classic"
)

func (o *Options) withDefaults(queue string) Options {
	var d Options
	if o != nil {
		d = *o
	}
	if d.DeadLetters == "" {
		d.DeadLetters = queue + ".dead-letters"
	}
	if d.Quarantine == "" {
		d.Quarantine = queue + ".quarantine"
	}
	if d.Kind == "" {
		d.Kind = Quorum
	}
	if d.Horizon == 0 {
		d.Horizon = driver.Forever
	}
	return d
}

// longestName is that of a queue, in bytes.
const longestName = 255

// check reports all that is wrong.
func (o *Options) check(url, queue string) error {
	var errs []error
	bad := func(format string, args ...any) { errs = append(errs, fmt.Errorf(format, args...)) }
	if _, err := amqp.ParseURI(url); err != nil { // its text may hold the password
		bad("url: cannot be read; it must be like amqp://user:password@host:5672/vhost, with reserved characters percent-encoded")
	}
	if queue == "" {
		bad("queue: is empty")
	}
	for field, name := range map[string]string{"queue": retryName(queue, lastLevel), "Options.DeadLetters": o.DeadLetters, "Options.Quarantine": o.Quarantine} {
		if len(name) > longestName {
			bad("%s: makes a queue's name of %d bytes; at most %d are allowed", field, len(name), longestName)
		}
	}
	if o.DeadLetters == queue || o.Quarantine == queue {
		bad("Options.DeadLetters, Options.Quarantine: are the queue that is consumed, and copies would be consumed, too; name others")
	}
	if o.Declare > DeclareNothing {
		bad("Options.Declare: is %d; it must be DeclareCopies, DeclareAll or DeclareNothing", o.Declare)
	}
	if o.Kind != Quorum && o.Kind != Classic {
		bad("Options.Kind: is %q; it must be Quorum or Classic", o.Kind)
	}
	if o.DeliveryLimit < 0 || o.DeliveryLimit > 0 && (o.Kind != Quorum || o.Declare != DeclareAll) {
		bad("Options.DeliveryLimit: is %d; it must be positive, and needs a quorum queue that is made here (DeclareAll)", o.DeliveryLimit)
	}
	if o.SingleActive && o.Declare != DeclareAll {
		bad("Options.SingleActive: needs a queue that is made here (DeclareAll); give the operator's the argument x-single-active-consumer")
	}
	if o.Horizon < 0 {
		bad("Options.Horizon: is %v; it must not be negative", o.Horizon)
	}
	if o.Prefetch < 0 || o.Prefetch > mostPrefetch {
		bad("Options.Prefetch: is %d; it must be from 0 to %d", o.Prefetch, mostPrefetch)
	}
	if o.Config.Recovery != nil {
		bad("Options.Config.Recovery: is set; it must be nil, for the Source connects anew by itself")
	}
	return errors.Join(errs...)
}
