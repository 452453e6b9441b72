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

const (
	// crashThreshold is the number of members in a row that have to start at one
	// offset before the last of them isolates the partition.
	crashThreshold = 3
	// isolatedMessages is the number of messages that an isolated partition
	// handles one by one. The message that kills the process was in the first
	// transaction that did not commit, so it is one of the next MaxBatch
	// unfinished messages; the rest is reserve for messages that were delayed.
	isolatedMessages = 2 * semelkafka.MaxBatch
	// lastWriteTimeout limits a write of a crash marker after a try, or when the
	// member ends.
	lastWriteTimeout = 5 * time.Second
)

// crashMarkers has the crash markers of all partitions of a ledger. The zero
// value is ready.
type crashMarkers struct {
	mu         sync.Mutex // because Own is called from another goroutine than the other methods
	partitions map[semelkafka.GroupPartition]*partitionMarker
}

// partitionMarker is the crash marker of a partition. The methods of a nil
// *partitionMarker do nothing, so that nil stands for "not isolated".
type partitionMarker struct {
	marker       *pgkafka.CrashMarker
	isolatedLeft int // number of messages still to be handled one by one; zero: the partition is not isolated

	// Guarded by crashMarkers.mu.
	start int64 // the offset from which the partition is read
	begun bool  // the marker says that this member has begun at start
}

// get returns the marker of a partition, and makes it if there is none. The
// caller holds mu.
func (c *crashMarkers) get(st *pgstore.Store, partition semelkafka.GroupPartition, start int64) *partitionMarker {
	p := c.partitions[partition]
	if p == nil {
		p = &partitionMarker{marker: pgkafka.NewCrashMarker(st, topicPartition(partition)), start: start}
		if c.partitions == nil {
			c.partitions = map[semelkafka.GroupPartition]*partitionMarker{}
		}
		c.partitions[partition] = p
	}
	return p
}

// assign says that this member gets a partition and reads it from start. It does
// not write to the database, because an idle partition may have many owners.
func (c *crashMarkers) assign(st *pgstore.Store, partition semelkafka.GroupPartition, start int64) {
	c.mu.Lock()
	defer c.mu.Unlock()
	p := c.get(st, partition, start)
	p.start, p.begun = start, false
}

// begin writes the marker before the first message of a partition since it was
// assigned. Before the later messages it does nothing.
func (c *crashMarkers) begin(ctx context.Context, st *pgstore.Store, it *semelkafka.Item) (*partitionMarker, error) {
	c.mu.Lock()
	p := c.get(st, it.Partition, it.From)
	start, begun := p.start, p.begun
	p.begun = true
	c.mu.Unlock()
	if begun {
		return p, nil
	}
	starts, err := p.marker.Begin(ctx, start)
	if err != nil {
		c.restart(p)
		return nil, err
	}
	if starts >= crashThreshold || p.marker.HasTries() {
		p.isolatedLeft = isolatedMessages
	}
	return p, nil
}

// lookup returns the marker of a partition, or nil if it was never assigned.
func (c *crashMarkers) lookup(partition semelkafka.GroupPartition) *partitionMarker {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.partitions[partition]
}

// restart makes the next message of a partition call Begin again.
func (c *crashMarkers) restart(p *partitionMarker) {
	c.mu.Lock()
	defer c.mu.Unlock()
	p.begun = false
}

// end writes that this member ends in order, so that nobody counts it as dead.
func (c *crashMarkers) end(ctx context.Context) {
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), lastWriteTimeout)
	defer cancel()
	c.mu.Lock()
	defer c.mu.Unlock()
	for _, p := range c.partitions {
		if !p.begun {
			continue
		}
		if err := p.marker.End(ctx); err != nil && !errors.Is(err, pgkafka.ErrFenced) {
			return // a marker is a hint: if it stays, it costs time only
		}
	}
}

// openTries returns how many tries of a message have no known end, because the
// process died or was cut off.
func (p *partitionMarker) openTries(m *consume.Message) int {
	if p == nil {
		return 0
	}
	return p.marker.Tries(m.Origin.Offset)
}

// beginTry writes that a try of a message begins, if the number of attempts is
// limited. An error is a *markerError, and the message must not be tried.
func (p *partitionMarker) beginTry(ctx context.Context, m *consume.Message, maxAttempts int) error {
	if p == nil || maxAttempts < 0 {
		return nil
	}
	if err := p.marker.Try(ctx, m.Origin.Offset); err != nil {
		return &markerError{err}
	}
	return nil
}

// endTry writes that a try has ended and that the message will be tried again. If
// that fails, the next write of the marker corrects it.
func (p *partitionMarker) endTry(ctx context.Context, m *consume.Message, maxAttempts int) {
	if p == nil || maxAttempts < 0 {
		return
	}
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), lastWriteTimeout)
	defer cancel()
	_ = p.marker.Ended(ctx, m.Origin.Offset)
}

// pass says that a message is settled without an effect. It removes the open
// tries from the database, so that they do not count again if an operator sets
// the watermark back.
func (p *partitionMarker) pass(ctx context.Context, m *consume.Message, maxAttempts int) {
	open := p.openTries(m)
	p.finish(m, true)
	if open > 0 {
		p.endTry(ctx, m, maxAttempts)
	}
}

// finish says that a message is done. isNew is false if it was done before.
func (p *partitionMarker) finish(m *consume.Message, isNew bool) {
	if p == nil {
		return
	}
	p.marker.Done(m.Origin.Offset)
	if isNew && p.isolatedLeft > 0 {
		p.isolatedLeft--
	}
}

// markerError says that a try was not made, because the crash marker could not be
// written.
type markerError struct{ error }

func (e *markerError) Unwrap() error { return e.error }

// result returns the error with which the message is held. No attempt was made.
func (e *markerError) result(operation string) error {
	reason := semel.ErrUnavailable
	if errors.Is(e, pgkafka.ErrFenced) {
		reason = semel.ErrLeaseLost
	}
	return &semel.Error{Reason: reason, Operation: operation, Cause: e}
}

// crashedError says that a message is not tried again, because tries of it have no
// end.
type crashedError struct{ openTries, attempts int }

func (e *crashedError) Error() string {
	return fmt.Sprintf("in %d of its %d attempts the process ended, or was cut off, before the handler returned", e.openTries, e.attempts)
}

// failure returns the final failure with which the message becomes a dead letter.
func (e *crashedError) failure() error {
	return &semel.Failure{Code: semel.CodeAttemptsExhausted, Message: e.Error()}
}

func topicPartition(partition semelkafka.GroupPartition) pgkafka.TopicPartition {
	return pgkafka.TopicPartition{Consumer: partition.Group, Topic: partition.Topic, TopicID: partition.TopicID, Partition: partition.Partition}
}
