package semelkafka

import (
	"errors"
	"fmt"
	"time"

	"github.com/semel-go/semel/consume"
	"github.com/twmb/franz-go/pkg/kgo"
)

// Position is where to read a partition from when the group's offset does not
// say it.
type Position uint8

// The positions.
const (
	// Earliest is the oldest record that the broker still has.
	Earliest Position = iota + 1
	// Latest is the end of the log: what is there is skipped.
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
	// Client is how to reach the cluster: kgo.SeedBrokers, kgo.DialTLSConfig,
	// kgo.SASL, time-outs, hooks. What the package's documentation lists as
	// set by a Source wins over what is set here.
	Client []kgo.Opt
	// DeadLetters and Parked are the topics that copies go to: by default
	// "dead-letters." and "quarantine." before the group. They must be there, must
	// not be compacted, and must take messages as large as the topics that are
	// consumed, or Serve does not start.
	DeadLetters, Quarantine string
	// OrderKey says which messages wait for each other. It is called before
	// m.Key is set, with the record's key, nil if it has none. Nil: those with
	// equal record keys do, and those without one do not.
	OrderKey func(m *consume.Message, key []byte) string

	// Start is where a group that has never committed begins: Earliest by
	// default. Latest skips what is published to a new partition before the
	// group has seen it.
	Start Position
	// OutOfRange is where to go on if the group's offset is not in the log any
	// more, because what followed it was deleted before it was read, or the
	// log was cut: Refuse by default. Messages are lost by then; the
	// other positions say that this may pass unnoticed.
	OutOfRange Position

	// Outstanding is how far a partition is read beyond its first unfinished
	// record, in records: 1000 by default. As many may come again after a
	// crash, and are found to be duplicates. A partition with a record that
	// waits is paused there; the others go on. ServeBatches begins with a batch
	// while the one before it is handled only if two of [MostInBatch] may be
	// outstanding: give a member of one partition several thousand.
	Outstanding int
	// CommitEvery is the longest time between an ack and its commit: 1 s by
	// default.
	CommitEvery time.Duration
	// HandOver is how long the handlers of a partition that is being taken
	// away have to end, so that their member can commit them: 10 s by default.
	// It must be shorter than the rebalance time-out. What does not end is
	// another member's afterwards, which waits for its lease.
	HandOver time.Duration
	// PollWait is how long Next waits for a message: 1 s by default.
	PollWait time.Duration
	// Horizon is the greatest age of a message. Zero: the longest retention.ms
	// of the topics, which the client must then be allowed to read.
	Horizon time.Duration
}

func (o *Options) withDefaults(group string) Options {
	var d Options
	if o != nil {
		d = *o
	}
	setDefault(&d.DeadLetters, "dead-letters."+group)
	setDefault(&d.Quarantine, "quarantine."+group)
	if d.OrderKey == nil {
		d.OrderKey = func(_ *consume.Message, key []byte) string { return string(key) }
	}
	setDefault(&d.Start, Earliest)
	setDefault(&d.OutOfRange, Refuse)
	setDefault(&d.Outstanding, 1000)
	setDefault(&d.CommitEvery, time.Second)
	setDefault(&d.HandOver, 10*time.Second)
	setDefault(&d.PollWait, time.Second)
	return d
}

func setDefault[T comparable](field *T, value T) {
	var zero T
	if *field == zero {
		*field = value
	}
}

// check reports all that is wrong, of options with their defaults set.
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
