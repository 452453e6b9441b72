package semelsqs

import (
	"cmp"
	"errors"
	"fmt"
	"strings"
	"time"

	"github.com/semel-go/semel/consume"
)

// Options configures a Source. Nil and zero fields mean the defaults.
type Options struct {
	// DeadLetters and Quarantine are the names or URLs of the queues that copies are
	// sent to: by default the queue's name with "-dead-letters" or "-quarantine",
	// before ".fifo" if the queue is a FIFO queue. They must exist, or Serve does not
	// start.
	DeadLetters, Quarantine string
	// OrderKey returns the order key of a message. Nil: the MessageGroupId in a FIFO
	// queue, and no order in a standard queue, where a group is not an order. It is
	// called before m.Key is set, and must not panic. Leave it nil if the queue has a
	// redrive policy.
	OrderKey func(m *consume.Message) string
	// Visibility is how long a received message stays invisible, unless it is
	// extended: the queue's own time-out by default, from 1 s to 12 h, in whole
	// seconds. After a death, messages come again when it is over.
	Visibility time.Duration
	// PollWait is how long one receive waits for a message: 5 s by default, from 1 s
	// to 20 s, in whole seconds. Serve may take that much longer to end, because SQS
	// would hide the messages of a receive that is broken off.
	PollWait time.Duration
}

const fifoSuffix = ".fifo"

// sibling is the name of a queue beside another one of the same kind.
func sibling(queue, suffix string) string {
	if i := strings.LastIndexByte(queue, '/'); i >= 0 {
		queue = queue[i+1:]
	}
	base, isFIFO := strings.CutSuffix(queue, fifoSuffix)
	if isFIFO {
		return base + suffix + fifoSuffix
	}
	return base + suffix
}

func (o *Options) withDefaults(queue string) Options {
	var d Options
	if o != nil {
		d = *o
	}
	d.DeadLetters = cmp.Or(d.DeadLetters, sibling(queue, "-dead-letters"))
	d.Quarantine = cmp.Or(d.Quarantine, sibling(queue, "-quarantine"))
	d.PollWait = cmp.Or(d.PollWait, 5*time.Second)
	return d
}

// maxVisibility is the longest time-out that SQS takes.
const maxVisibility = 12 * time.Hour

// check reports every mistake in the options.
func (o *Options) check() error {
	var errs []error
	seconds := func(name string, d, most time.Duration) {
		if d < time.Second || d > most || d%time.Second != 0 {
			errs = append(errs, fmt.Errorf("%s: is %v; it must be whole seconds from 1s to %v", name, d, most))
		}
	}
	seconds("PollWait", o.PollWait, 20*time.Second)
	if o.Visibility != 0 {
		seconds("Visibility", o.Visibility, maxVisibility)
	}
	if o.DeadLetters == o.Quarantine {
		errs = append(errs, fmt.Errorf("DeadLetters and Quarantine: are both %q; name two queues", o.DeadLetters))
	}
	return errors.Join(errs...)
}
