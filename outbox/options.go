package outbox

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"time"
	"unicode/utf8"

	"github.com/semel-go/semel/internal/callback"
	"github.com/semel-go/semel/internal/names"
)

// Options configures a Publisher. Nil and zero fields mean the defaults.
type Options struct {
	// Name begins the name under which the publisher leases lanes, for people: up to 255
	// bytes of UTF-8 without control characters. A random part follows. Default: "publisher".
	Name string
	// Lease is how long a lease holds without renewal: 15 s by default, at least 1 s. If a
	// publisher dies, others wait that long for its lanes. If one joins, the others give it
	// its share when nothing of these lanes is being sent, or after about that long.
	Lease time.Duration
	// Batch is the most messages that one Publish of the sink gets: 256 by default. If
	// reading so many from the store takes longer than 30 s, the publisher reads fewer.
	Batch int
	// InFlight is the most messages of one topic that are being sent, or sent and not yet
	// recorded: 512 by default. A message counts once more for each 128 KiB of its body. All
	// topics together have at most eight times as many, so that a topic that hangs delays no
	// other. At that number the publisher takes no more.
	InFlight int
	// Poll is how often an idle publisher looks for messages: 1 s by default, 20 ms if
	// the store has no notifications.
	Poll time.Duration
	// Backoff is the delay of an order key after the n-th failed attempt of a message
	// (n ≥ 1): by default 1 s, twice as long after each further one, at most 1 min, minus
	// a random part. It is at most LongestDelay. A sink's RetryAfter can make the delay
	// longer. If Backoff panics, it is the default without the random part.
	Backoff func(n int) time.Duration
	// MaxAttempts quarantines a message that has failed so often, if this publisher has
	// sent another one of its topic since the attempt before: otherwise the topic may be
	// away. 0, the default: only a poison message goes to the quarantine.
	MaxAttempts int
	// Retention is how long messages are kept after they were sent. 0, the default: they
	// are deleted.
	Retention time.Duration
	// Drain is how long messages that are being sent may take after Run's context has
	// ended: 10 s by default. If the sink or the store does not answer, Run takes up to
	// 6 s more.
	Drain time.Duration
	// Observe is called for each event, from several goroutines. It must not block. A panic
	// of Observe is logged and has no effect. Nil: events are not reported. See LogEvents.
	Observe func(ctx context.Context, e Event)
}

// awake is how long a publisher looks for messages often after the last one, because a
// transaction need not notify shortly after another one has.
const awake = 500 * time.Millisecond

const awakePoll = 20 * time.Millisecond

func (o *Options) withDefaults(notified bool) (Options, error) {
	var d Options
	if o != nil {
		d = *o
	}
	d.Name = cmp.Or(d.Name, "publisher")
	d.Lease = cmp.Or(d.Lease, 15*time.Second)
	d.Batch = cmp.Or(d.Batch, 256)
	d.InFlight = cmp.Or(d.InFlight, max(512, d.Batch))
	if d.Poll == 0 {
		d.Poll = awakePoll
		if notified {
			d.Poll = time.Second
		}
	}
	if d.Backoff == nil {
		d.Backoff = backoff
	}
	pause := callback.Backoff("outbox", d.Backoff)
	d.Backoff = func(n int) time.Duration { return min(pause(n), LongestDelay) }
	d.Drain = cmp.Or(d.Drain, 10*time.Second)
	var errs []error
	if err := names.Check("Name", d.Name); err != nil {
		errs = append(errs, err)
	}
	for _, f := range []struct {
		wrong bool
		text  string
	}{
		{!utf8.ValidString(d.Name), "Name: is not valid UTF-8"},
		{d.Lease < time.Second, fmt.Sprintf("Lease: is %v; it must be at least 1s", d.Lease)},
		{d.Batch < 1, fmt.Sprintf("Batch: is %d; it must be at least 1", d.Batch)},
		{d.InFlight < d.Batch, fmt.Sprintf("InFlight: is %d; it must be at least Batch, %d", d.InFlight, d.Batch)},
		{d.Poll < time.Millisecond, fmt.Sprintf("Poll: is %v; it must be at least 1ms", d.Poll)},
		{d.MaxAttempts < 0, fmt.Sprintf("MaxAttempts: is %d; it must not be negative", d.MaxAttempts)},
		{d.Retention < 0, fmt.Sprintf("Retention: is %v; it must not be negative", d.Retention)},
		{d.Drain < 0, fmt.Sprintf("Drain: is %v; it must not be negative", d.Drain)},
	} {
		if f.wrong {
			errs = append(errs, errors.New(f.text))
		}
	}
	if err := errors.Join(errs...); err != nil {
		return d, fmt.Errorf("outbox: options: %w", err)
	}
	return d, nil
}

func backoff(n int) time.Duration {
	d := min(time.Second<<min(max(n, 1)-1, 10), time.Minute)
	return d - rand.N(d/4)
}
