package kafkapg

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"time"

	"github.com/semel-go/semel"
	"github.com/semel-go/semel/consume"
	"github.com/semel-go/semel/consume/semelkafka"
	"github.com/semel-go/semel/store/pgstore"
	"github.com/semel-go/semel/store/pgstore/pgkafka"
)

// A message that kills its process takes along the transaction in which it was
// tried, and all that could have told of it. So a member notes where it begins
// with a partition. Where two in a row have begun and got no further, the third
// takes care: it handles the messages alone, and notes each try before it.

const (
	// crashThreshold is how many members in a row have to start at one offset before
	// care is taken.
	crashThreshold = 3
	// careFor is how many messages are then done alone. What kills was in the first
	// transaction that did not commit, and so is one of the next MaxBatch that
	// are not done, but for those that others held up.
	careFor = 2 * semelkafka.MaxBatch
	// lastNote is how long a note may take that comes behind a try, or at the end.
	lastNote = 5 * time.Second
)

// cares are those of a ledger. The zero value is ready.
type cares struct {
	mu sync.Mutex // Own comes from another goroutine than the rest
	of map[semelkafka.Place]*care
}

// care is what a ledger notes of a partition.
type care struct {
	marker *pgkafka.CrashMarker
	left   int // messages that are still to be done alone; zero: none

	// Guarded by mu.
	at    int64
	begun bool // at at
}

func (cs *cares) get(st *pgstore.Store, of semelkafka.Place, at int64) *care {
	c := cs.of[of]
	if c == nil {
		c = &care{marker: pgkafka.NewCrashMarker(st, topicPartition(of)), at: at}
		if cs.of == nil {
			cs.of = map[semelkafka.Place]*care{}
		}
		cs.of[of] = c
	}
	return c
}

// own is when a partition is owned, to be read from an offset. It notes nothing:
// one that is idle may have many owners.
func (cs *cares) own(st *pgstore.Store, of semelkafka.Place, at int64) {
	cs.mu.Lock()
	defer cs.mu.Unlock()
	c := cs.get(st, of, at)
	c.at, c.begun = at, false
}

// begin comes before the first message of a partition since it was owned, and
// does nothing before the others.
func (cs *cares) begin(ctx context.Context, st *pgstore.Store, it *semelkafka.Item) (*care, error) {
	cs.mu.Lock()
	c := cs.get(st, it.Place, it.From)
	at, begun := c.at, c.begun
	c.begun = true
	cs.mu.Unlock()
	if begun {
		return c, nil
	}
	times, err := c.marker.Begin(ctx, at)
	if err != nil {
		cs.again(c)
		return nil, err
	}
	if times >= crashThreshold || c.marker.HasTries() {
		c.left = careFor
	}
	return c, nil
}

// known is that of a partition, nil: it was never owned.
func (cs *cares) known(of semelkafka.Place) *care {
	cs.mu.Lock()
	defer cs.mu.Unlock()
	return cs.of[of]
}

// again has the next message begin anew.
func (cs *cares) again(c *care) {
	cs.mu.Lock()
	defer cs.mu.Unlock()
	c.begun = false
}

// end is when the member ends in order: then it has not died.
func (cs *cares) end(ctx context.Context) {
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), lastNote)
	defer cancel()
	cs.mu.Lock()
	defer cs.mu.Unlock()
	for _, c := range cs.of {
		if !c.begun {
			continue
		}
		if err := c.marker.End(ctx); err != nil && !errors.Is(err, pgkafka.ErrFenced) {
			return // it is a hint
		}
	}
}

// died is how many tries of a message have no end.
func (c *care) died(m *consume.Message) int {
	if c == nil {
		return 0
	}
	return c.marker.Tries(m.Origin.Offset)
}

// try comes before a message is tried, if the tries are limited. An error is a
// *noteError, and the message is not to be tried.
func (c *care) try(ctx context.Context, m *consume.Message, most int) error {
	if c == nil || most < 0 {
		return nil
	}
	if err := c.marker.Try(ctx, m.Origin.Offset); err != nil {
		return &noteError{err}
	}
	return nil
}

// tried comes behind it if it was in vain: it has ended. If that cannot be noted,
// it is with the next note.
func (c *care) tried(ctx context.Context, m *consume.Message, most int) {
	if c == nil || most < 0 {
		return
	}
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), lastNote)
	defer cancel()
	_ = c.marker.Ended(ctx, m.Origin.Offset)
}

// passed is when a message without an effect has been passed over.
func (c *care) passed(ctx context.Context, m *consume.Message, most int) {
	died := c.died(m)
	if c.done(m, true); died > 0 {
		c.tried(ctx, m, most) // not to be taken for another try, should people set the watermark back
	}
}

// done is when a message has its end, which it had before if it is not new.
func (c *care) done(m *consume.Message, fresh bool) {
	if c == nil {
		return
	}
	c.marker.Done(m.Origin.Offset)
	if fresh && c.left > 0 {
		c.left--
	}
}

// noteError is why a try was not noted, and not made.
type noteError struct{ error }

func (e *noteError) Unwrap() error { return e.error }

// end is that of the message: it comes again, and no attempt was made.
func (e *noteError) end(op string) error {
	reason := semel.ErrUnavailable
	if errors.Is(e, pgkafka.ErrFenced) {
		reason = semel.ErrLeaseLost
	}
	return &semel.Error{Reason: reason, Operation: op, Cause: e}
}

// cutOffError is why a message is tried no more: tries of it had no end.
type cutOffError struct{ died, attempts int }

func (e *cutOffError) Error() string {
	return fmt.Sprintf("in %d of its %d attempts the process ended, or was cut off, before the handler returned", e.died, e.attempts)
}

// failure is the end of the message.
func (e *cutOffError) failure() error {
	return &semel.Failure{Code: semel.CodeAttemptsExhausted, Message: e.Error()}
}

func topicPartition(of semelkafka.Place) pgkafka.TopicPartition {
	return pgkafka.TopicPartition{Consumer: of.Group, Topic: of.Topic, TopicID: of.TopicID, Partition: of.Partition}
}
