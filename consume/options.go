package consume

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"time"
)

// Options configures a Consumer. Nil and zero fields mean the defaults.
type Options struct {
	// MaxAttempts is how often the handler may start for one key before the
	// message is dead-lettered: 10 by default; negative: no limit. It is
	// checked before the handler runs, so that with a Guard a message that kills
	// its process stops too. An Atomic knows nothing of a try that died, and
	// sqlitestore's of none in an earlier delivery: with that it limits nothing
	// where the broker waits for retries. Up to three tries of an Atomic that an
	// outage of the store cut off do not count. Under semel.Park one doubt parks
	// the key instead.
	MaxAttempts int
	// MaxDeliveries dead-letters a message that the broker has delivered more
	// often, for whatever reason. Zero: no limit. Set it with an Atomic, whose
	// rollback forgets attempts. Kafka does not count deliveries.
	MaxDeliveries int
	// Backoff is the pause after the n-th failed attempt (n ≥ 1). Nil: the
	// function Backoff. It paces this message; semel.Options.Backoff paces its
	// duplicates as well, so set it to the same.
	Backoff func(n int) time.Duration

	// Retention is how long the runner keeps outcomes: the same as
	// semel.Options.Retention. An older message is not run, for whether it has
	// been run is no longer known. Zero: what the runner says by a method
	// Retention() time.Duration; New refuses a runner without it.
	Retention time.Duration
	// Late is what becomes of such a message: Park by default, or DeadLetter. It
	// never meets one without a Message.Published, whose age nobody knows: that
	// is run. RabbitMQ's have one only if their producers, or the broker, set it.
	// To refuse those without it, have the CallFunc return an error for them.
	Late Action
	// ShortRetention lets Serve start although the broker may deliver
	// messages older than Retention, which Late then meets.
	ShortRetention bool

	// AckFailures acks a message whose handler returned a *semel.Failure,
	// instead of dead-lettering it: for failures that are results.
	AckFailures bool

	// Concurrency is how many handlers run at once: 64 by default.
	Concurrency int
	// InFlight is how many messages are taken and not settled at once, those
	// that wait included: 4 times Concurrency by default.
	InFlight int
	// Drain is how long the running handlers have, when Serve's context has
	// ended, until theirs end too: 30 s by default.
	Drain time.Duration

	// Observe is told of each event. It is called from many goroutines and
	// must not block. Nil: nobody is.
	Observe func(ctx context.Context, e Event)
}

// DefaultRetention is a good one for consumers, here and in semel.Options: the
// retention of most brokers.
const DefaultRetention = 7 * 24 * time.Hour

func (o *Options) withDefaults() Options {
	var d Options
	if o != nil {
		d = *o
	}
	setDefault(&d.MaxAttempts, 10)
	if d.Backoff == nil {
		d.Backoff = Backoff
	}
	setDefault(&d.Late, Park)
	setDefault(&d.Retention, DefaultRetention)
	setDefault(&d.Concurrency, 64)
	setDefault(&d.InFlight, 4*d.Concurrency)
	setDefault(&d.Drain, 30*time.Second)
	return d
}

func setDefault[T comparable](field *T, value T) {
	var zero T
	if *field == zero {
		*field = value
	}
}

// Backoff is the default of Options.Backoff: 1 s, doubling to 5 min, less up to
// a quarter at random.
func Backoff(n int) time.Duration {
	d := min(time.Second<<min(max(n, 1)-1, 10), 5*time.Minute)
	return d - rand.N(d/4)
}

// validate reports all that is wrong, of options with their defaults set.
func (o *Options) validate() error {
	var errs []error
	bad := func(format string, args ...any) { errs = append(errs, fmt.Errorf(format, args...)) }
	if o.MaxDeliveries < 0 {
		bad("MaxDeliveries: is %d; it must not be negative", o.MaxDeliveries)
	}
	if o.Late != Park && o.Late != DeadLetter {
		bad("Late: is %v; it must be Park or DeadLetter", o.Late)
	}
	if o.Retention < time.Second {
		bad("Retention: is %v; it must be at least 1s", o.Retention)
	}
	if o.Concurrency < 1 {
		bad("Concurrency: is %d; it must be at least 1", o.Concurrency)
	}
	if o.InFlight < o.Concurrency {
		bad("InFlight: is %d; it must be at least Concurrency, %d", o.InFlight, o.Concurrency)
	}
	if o.Drain < 0 {
		bad("Drain: is %v; it must not be negative", o.Drain)
	}
	return errors.Join(errs...)
}
