package consume

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"time"

	"github.com/semel-go/semel"
	"github.com/semel-go/semel/internal/callback"
)

// Options configures a Consumer. A nil *Options and zero fields mean the defaults.
type Options struct {
	// MaxAttempts is how often the handler may start for one key before the
	// message is dead-lettered: 10 by default; negative: no limit. Under
	// semel.Park the first attempt whose effect is not known parks the call
	// instead, and the message goes to the quarantine.
	//
	// If the runner is an Atomic, set MaxDeliveries and Starts, too, because an
	// Atomic forgets an attempt whose process died. (The Atomics of sqlitestore and
	// dynamostore forget all attempts of earlier deliveries.) A Guard counts an
	// attempt before the handler runs, so that a message that kills its process is
	// dead-lettered, too.
	//
	// If the store goes down after an attempt in an Atomic, that attempt does not
	// count. A delivery has at most three such attempts: later ones count, because
	// the message may be what brings the store down.
	MaxAttempts int
	// MaxDeliveries dead-letters a message for which two things are true: the
	// broker has delivered it more than MaxDeliveries times, and its handler has
	// begun MaxDeliveries times. The second condition spares a message that only
	// waits and is given back at each restart. For a message whose key comes from
	// Unprotected, the first condition is enough. Zero: no limit.
	//
	// The option has no effect if the broker does not count deliveries: with Kafka, and
	// in an exclusive or a failover subscription of Pulsar. A classic queue of RabbitMQ
	// says only whether it has delivered a message before, so that redeliveries after the
	// death of a process count as 2 at most. There, under an Atomic, a message that kills
	// its process comes again without a limit: use a Guard, or another kind of queue or
	// subscription.
	MaxDeliveries int
	// Starts counts how often a handler has begun, for MaxDeliveries. It is
	// required if MaxDeliveries is set and the runner is an Atomic; a Guard as the
	// runner counts by itself. Starts counts runs of the handler that failed or whose
	// process died. It begins to count after delivery number MaxDeliveries, so the
	// handler may run up to 2 × MaxDeliveries times. Give Starts the policy
	// semel.Retry and the runner's Retention. After such a process has died, the
	// message is held until the lease of Starts has expired (its Options.Lease, 30 s
	// by default).
	Starts *semel.Guard
	// Backoff is the pause after the n-th failed attempt (n ≥ 1). Nil: the
	// function Backoff. It delays only this message. semel.Options.Backoff pauses
	// the key, and so its duplicates, too. Set both to the same function, so that a
	// duplicate does not start the next attempt earlier.
	// If the handler's error has the method RetryAfter() time.Duration, that is
	// the pause. If Backoff panics: 1 s, 2 s, 4 s and so on, at most 1 min.
	Backoff func(n int) time.Duration

	// Retention is how long the runner keeps outcomes: the same as
	// semel.Options.Retention. An older message does not run, because the outcome
	// of an earlier run may have been deleted already; it goes to the quarantine.
	// Zero: the result of the runner's method Retention() time.Duration, which a
	// Guard and each Atomic have.
	//
	// A message without a time of publication always runs. To dead-letter it
	// instead, return an error from the CallFunc.
	Retention time.Duration
	// AllowShortRetention lets Serve start although the broker may deliver messages
	// that are older than Retention. If it is not set, Serve returns an error for such
	// a broker.
	AllowShortRetention bool

	// Reopen lets redriven messages run again: dead letters that an operator has
	// sent back. A key that has failed stays failed, so a redriven message would be
	// dead-lettered again. With Reopen, the Consumer first reopens the key of a
	// message that has the header RedriveHeader: see semel.Guard.Reopen. If that refuses
	// because of recorded steps, the new dead letter says so. Such a message runs also if it
	// is older than Retention. Set Reopen to a Guard over the runner's
	// store, with the runner's Retention and Encryption. Nil: only an operator reopens keys, with semel
	// inspect reopen.
	Reopen *semel.Guard

	// AckFailures acks a message whose handler returned a *semel.Failure, instead
	// of dead-lettering it. Use it if such failures are normal results. A failure
	// with semel.CodeAttemptsExhausted is dead-lettered all the same.
	AckFailures bool

	// Concurrency is how many handlers run at the same time: 64 by default.
	Concurrency int
	// InFlight limits the messages that run or are ready to run, and are not acked:
	// 4 times Concurrency by default. If the broker limits how often it delivers a
	// message, Concurrency is the limit instead, whatever InFlight is: a message that
	// waits for a free handler could be delivered again, and so use up its deliveries. A
	// message that waits for a driver.Turn counts here then, and not for Waiting.
	InFlight int
	// Waiting limits the messages that the Consumer keeps besides InFlight: 16 times
	// InFlight by default. These messages wait for an earlier message of their order
	// key, for the end of the pause after a failed attempt, for another process that
	// handles their key, for a driver.Turn of the runner, or for the broker's answer to an ack or a dead letter. At this limit the Consumer takes no message from the
	// broker until one of them goes on. A second, fixed limit is 64 MiB for the bodies of the waiting messages.
	Waiting int
	// Drain is how long the running handlers may go on after Serve's context
	// has ended, before their contexts end, too: 30 s by default. It must not
	// be negative.
	Drain time.Duration

	// Observe is called for each event, from many goroutines. It must not
	// block. A panic of Observe is logged and has no effect. Nil: LogEvents(nil), which logs dead letters, outages and trouble
	// with the broker.
	Observe func(ctx context.Context, e Event)
}

// DefaultRetention is a value for semel.Options.Retention of a consumer's Guard or
// Atomic: 7 days, which is how long Kafka keeps messages by default. Set it explicitly,
// because the default of semel.Options.Retention is 24 h. A Consumer takes its Retention
// from the runner.
const DefaultRetention = 7 * 24 * time.Hour

func (o *Options) withDefaults() Options {
	var d Options
	if o != nil {
		d = *o
	}
	d.MaxAttempts = cmp.Or(d.MaxAttempts, 10)
	if d.Backoff == nil {
		d.Backoff = Backoff
	}
	d.Backoff = callback.Backoff("consume", d.Backoff)
	if d.Observe == nil {
		d.Observe = LogEvents(nil)
	}
	d.Retention = cmp.Or(d.Retention, DefaultRetention)
	d.Concurrency = cmp.Or(d.Concurrency, 64)
	d.InFlight = cmp.Or(d.InFlight, 4*d.Concurrency)
	d.Waiting = cmp.Or(d.Waiting, 16*d.InFlight)
	d.Drain = cmp.Or(d.Drain, 30*time.Second)
	return d
}

// Backoff is the default of Options.Backoff. The pause is 1 s after the first attempt,
// and twice as long after each further one, up to 5 min. Up to a quarter of the pause is
// taken off at random.
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
	if o.Waiting < 0 {
		bad("Waiting: is %d; it must not be negative", o.Waiting)
	}
	if o.Drain < 0 {
		bad("Drain: is %v; it must not be negative", o.Drain)
	}
	return errors.Join(errs...)
}
