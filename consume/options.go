package consume

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"time"

	"github.com/semel-go/semel/consume/driver"
)

// Options configures a Consumer. Nil and zero fields mean the defaults.
type Options struct {
	// MaxAttempts is how often the handler may start for one key before the
	// message is dead-lettered: 10 by default; negative: no limit. Under
	// semel.Park the first attempt whose effect is not known parks the call
	// instead, and the message goes to the quarantine.
	//
	// A Guard counts attempts before the handler runs, so that a message that
	// kills its process is dead-lettered, too. An Atomic forgets an attempt
	// whose process died or whose transaction did not commit, and sqlitestore's
	// Atomic forgets all attempts of earlier deliveries. With an Atomic, set
	// MaxDeliveries. Up to
	// three attempts that an outage of the store cut off do not count.
	MaxAttempts int
	// MaxDeliveries dead-letters a message that the broker has delivered more
	// often, for whatever reason. Zero: no limit. Kafka does not count
	// deliveries.
	MaxDeliveries int
	// Backoff is the pause after the n-th failed attempt (n ≥ 1). Nil: the
	// function Backoff. It delays this message; semel.Options.Backoff delays
	// its duplicates as well. Set both to the same function, so that a duplicate
	// does not start the next attempt earlier.
	Backoff func(n int) time.Duration

	// Retention is how long the runner keeps outcomes: the same as
	// semel.Options.Retention. An older message does not run, because its
	// outcome may be deleted, and goes to the quarantine. Zero: the result of
	// the runner's method Retention() time.Duration; New refuses a runner
	// without it.
	//
	// A message without a time of publication always runs. To dead-letter it
	// instead, return an error from the CallFunc.
	Retention time.Duration
	// DeadLetterLate sends messages older than Retention to the dead letters
	// instead of the quarantine.
	DeadLetterLate bool
	// ShortRetention lets Serve start although the broker may deliver messages
	// older than Retention.
	ShortRetention bool

	// AckFailures acks a message whose handler returned a *semel.Failure,
	// instead of dead-lettering it: for failures that are results.
	AckFailures bool

	// Concurrency is how many handlers run at once: 64 by default.
	Concurrency int
	// InFlight is how many messages the consumer holds at once that are not acked
	// yet, waiting ones included: 4 times Concurrency by default.
	InFlight int
	// Drain is how long the running handlers may go on after Serve's context
	// has ended, before their contexts end, too: 30 s by default.
	Drain time.Duration

	// Observe is called for each event, from many goroutines. It must not
	// block. Nil: events are not reported.
	Observe func(ctx context.Context, e Event)
}

// DefaultRetention suits consumers, here and in semel.Options: it is the
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
	setDefault(&d.Retention, DefaultRetention)
	setDefault(&d.Concurrency, 64)
	setDefault(&d.InFlight, 4*d.Concurrency)
	setDefault(&d.Drain, 30*time.Second)
	return d
}

// lateAction is what happens to a message that is older than Retention.
func (o *Options) lateAction() driver.Action {
	if o.DeadLetterLate {
		return driver.DeadLetter
	}
	return driver.Quarantine
}

func setDefault[T comparable](field *T, value T) {
	var zero T
	if *field == zero {
		*field = value
	}
}

// Backoff is the default of Options.Backoff: 1 s after the first attempt, twice
// as long after each further one, at most 5 min, minus a random part of up to a
// quarter.
func Backoff(n int) time.Duration {
	d := min(time.Second<<min(max(n, 1)-1, 10), 5*time.Minute)
	return d - rand.N(d/4)
}

// validate reports every invalid field. The defaults must be set.
func (o *Options) validate() error {
	var errs []error
	bad := func(format string, args ...any) { errs = append(errs, fmt.Errorf(format, args...)) }
	if o.MaxDeliveries < 0 {
		bad("MaxDeliveries: is %d; it must not be negative", o.MaxDeliveries)
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
