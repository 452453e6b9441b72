package semelkafka

import (
	"cmp"
	"errors"
	"fmt"
	"time"

	"github.com/semel-go/semel/consume"
	"github.com/twmb/franz-go/pkg/kgo"
)

// Position says where to read a partition from, if the group's offset does not
// say it.
type Position uint8

// The positions.
const (
	// Earliest is the oldest record that the broker still has.
	Earliest Position = iota + 1
	// Latest is the end of the log: earlier records are skipped.
	Latest
	// Refuse ends the source with an error, for people to decide.
	Refuse
)

// String is the position in words.
func (p Position) String() string {
	switch p {
	case Earliest:
		return "earliest"
	case Latest:
		return "latest"
	case Refuse:
		return "refuse"
	}
	return fmt.Sprintf("Position(%d)", uint8(p))
}

// Options configures a Source. Nil and zero fields mean the defaults.
type Options struct {
	// Client says how to reach the cluster: kgo.SeedBrokers, kgo.DialTLSConfig,
	// kgo.SASL, time-outs, hooks. The package documentation lists the options
	// that a Source overrides. A Source makes a second client for copies that are too large
	// for the first: with a hook that accepts one client only, such as kprom.Metrics, these
	// are not sent.
	Client []kgo.Opt
	// DeadLetters and Quarantine are the topics that copies go to: by default
	// "dead-letters." or "quarantine." and the group. They must exist, must not
	// be compacted, and must take messages as large as the consumed topics do,
	// or Serve does not start. See the package documentation for later changes.
	DeadLetters, Quarantine string
	// OrderKey returns the order key of a message. It is called before m.Key is
	// set, with the record's key, or nil if it has none. By default messages
	// with equal record keys wait for each other, and those without one do not
	// wait. It must not panic.
	OrderKey func(m *consume.Message, key []byte) string

	// Start is where a group without committed offsets begins: Earliest by
	// default. With Latest, a group without a committed offset in a topic begins at the
	// end of the topic's partitions. A partition that is added later, when others of the
	// topic have a committed offset, is read from its first message. So is a partition
	// without one, if the group's offsets in the topic were committed by another client:
	// before the first start, reset those to the end with kafka-consumer-groups.sh.
	Start Position
	// OutOfRange is where to go on if the group's offset is not in the log any
	// more, because the following messages were deleted unread, or the log was
	// cut: Refuse by default. Messages are lost in that case; with another
	// position Serve goes on without an error.
	OutOfRange Position

	// Outstanding is how many records a partition is read beyond its first
	// unfinished one: 1000 by default. Up to as many may come again after a
	// crash, as duplicates. A partition with a held record pauses there; the
	// others go on. ServeBatches prepares a batch while it handles the one
	// before only if two of [MaxBatch] may be outstanding: set several thousand
	// for a member with one partition.
	Outstanding int
	// CommitEvery is the longest time between an ack and its commit: 1 s by
	// default.
	CommitEvery time.Duration
	// HandOver is how long running handlers may take when their partition is
	// taken away, so that this member can commit them: 10 s by default. It must
	// be shorter than the rebalance time-out; leave 10 s for the commit after it, because
	// a member that is late is dropped, and its last messages come again. If a handler
	// runs longer, another member gets its message, and waits for its lease.
	HandOver time.Duration
	// PollWait is how long Next waits for a message: 1 s by default.
	PollWait time.Duration
	// Horizon is the greatest age of a message. Zero: the longest retention.ms
	// of the topics; the client must be allowed to read it. Serve refuses to start if
	// it is longer than the consumer's Retention: see consume.Options.AllowShortRetention.
	Horizon time.Duration
}

func (o *Options) withDefaults(group string) Options {
	var d Options
	if o != nil {
		d = *o
	}
	d.DeadLetters = cmp.Or(d.DeadLetters, "dead-letters."+group)
	d.Quarantine = cmp.Or(d.Quarantine, "quarantine."+group)
	if d.OrderKey == nil {
		d.OrderKey = func(_ *consume.Message, key []byte) string { return string(key) }
	}
	d.Start = cmp.Or(d.Start, Earliest)
	d.OutOfRange = cmp.Or(d.OutOfRange, Refuse)
	d.Outstanding = cmp.Or(d.Outstanding, 1000)
	d.CommitEvery = cmp.Or(d.CommitEvery, time.Second)
	d.HandOver = cmp.Or(d.HandOver, 10*time.Second)
	d.PollWait = cmp.Or(d.PollWait, time.Second)
	return d
}

// check reports every invalid field. The defaults must be set.
func (o *Options) check() error {
	var errs []error
	bad := func(format string, args ...any) { errs = append(errs, fmt.Errorf(format, args...)) }
	between := func(name string, d, least, most time.Duration) {
		if d < least || d > most {
			bad("%s: is %v; it must be from %v to %v", name, d, least, most)
		}
	}
	if o.DeadLetters == o.Quarantine {
		bad("DeadLetters and Quarantine: are both %q; name two topics", o.Quarantine)
	}
	if o.Start > Latest {
		bad("Start: is %v; it must be Earliest or Latest", o.Start)
	}
	if o.OutOfRange > Refuse {
		bad("OutOfRange: is %v; it must be Refuse, Earliest or Latest", o.OutOfRange)
	}
	if o.Outstanding < 1 {
		bad("Outstanding: is %d; it must be at least 1", o.Outstanding)
	}
	between("CommitEvery", o.CommitEvery, time.Millisecond, time.Minute)
	between("HandOver", o.HandOver, time.Millisecond, 10*time.Minute)
	between("PollWait", o.PollWait, 10*time.Millisecond, 30*time.Second)
	if o.Horizon < 0 {
		bad("Horizon: is %v; it must not be negative", o.Horizon)
	}
	return errors.Join(errs...)
}
