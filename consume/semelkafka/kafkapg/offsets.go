package kafkapg

import (
	"context"
	"errors"
	"fmt"
	"strconv"
	"sync"

	"github.com/jackc/pgx/v5"

	"github.com/semel-go/semel/consume"
	"github.com/semel-go/semel/consume/driver"
	"github.com/semel-go/semel/consume/semelkafka"
	"github.com/semel-go/semel/store/pgstore"
	"github.com/semel-go/semel/store/pgstore/pgkafka"
)

// ServeOffsets handles messages until ctx ends, and keeps a watermark for each
// partition.
//
// For o see semelkafka.Source.ServeBatches; o.MaxAttempts applies too. o.Reopen must be
// nil, because by offsets there is no failed record that could be reopened: a dead
// letter that is sent back is a new message, and runs each time that it is sent. Call
// Source.Close after ServeOffsets has returned.
func ServeOffsets(ctx context.Context, s *semelkafka.Source, st *pgstore.Store, h Handler, o *consume.Options) error {
	if s == nil || st == nil || h == nil {
		return errors.New("kafkapg: ServeOffsets: the source, the store and the handler must not be nil")
	}
	if o != nil && o.Reopen != nil {
		return errors.New("kafkapg: ServeOffsets: Reopen: must be nil, because by offsets no record of a failure is kept: " +
			"a dead letter that is sent back runs as a new message; use ServeKeyed if it must run once")
	}
	l := newOffsetsLedger(st, h, maxAttemptsOf(o))
	defer l.markers.end(ctx)
	return s.ServeBatches(ctx, l, o)
}

// offsetsLedger is the semelkafka.Ledger of ServeOffsets.
type offsetsLedger struct {
	store       *pgstore.Store
	handler     Handler
	maxAttempts int
	markers     crashMarkers

	mu        sync.Mutex // guards positions
	positions map[semelkafka.GroupPartition]*position
}

func newOffsetsLedger(st *pgstore.Store, h Handler, maxAttempts int) *offsetsLedger {
	return &offsetsLedger{store: st, handler: h, maxAttempts: maxAttempts, positions: map[semelkafka.GroupPartition]*position{}}
}

// position is how far this member has come in a partition.
type position struct {
	watermark    *pgkafka.Watermark // nil: lost or in doubt; the partition has to be owned again
	failedOffset int64              // of the message that failed alone last; -1: none
	failures     int                // how often that message failed
	busyOffset   int64              // of the message that was alone in conflict last
	busy         int                // how often that message was in conflict, one time after the other
}

// failuresOf returns how often a message has failed alone.
func (p *position) failuresOf(m *consume.Message) int {
	if p.failedOffset != m.Origin.Offset {
		return 0
	}
	return p.failures
}

// Own implements semelkafka.Ledger.
func (l *offsetsLedger) Own(ctx context.Context, partition semelkafka.GroupPartition, start int64) (int64, semelkafka.LastMessage, error) {
	none := semelkafka.LastMessage{}
	w, err := pgkafka.Own(ctx, l.store, topicPartition(partition), start)
	switch {
	case errors.Is(err, pgkafka.ErrRecreated), errors.Is(err, pgstore.ErrClosed):
		return 0, none, fmt.Errorf("%w: %w", driver.ErrClosed, err)
	case err != nil:
		return 0, none, err
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	l.positions[partition] = &position{watermark: w, failedOffset: -1}
	l.markers.assign(l.store, partition, w.Next())
	return w.Next(), semelkafka.LastMessage(w.Last()), nil
}

// position returns the position in a message's partition, and owns the partition
// again if that is necessary.
func (l *offsetsLedger) position(ctx context.Context, it *semelkafka.Item) (*position, error) {
	l.mu.Lock()
	before := l.positions[it.Partition]
	l.mu.Unlock()
	if before != nil && before.watermark != nil {
		return before, nil
	}
	if _, _, err := l.Own(ctx, it.Partition, it.From); err != nil {
		return nil, err
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	p := l.positions[it.Partition]
	if before != nil {
		p.failedOffset, p.failures = before.failedOffset, before.failures
	}
	return p, nil
}

// OrderKey implements semelkafka.Ledger: no message overtakes another one of its
// partition.
func (l *offsetsLedger) OrderKey(it semelkafka.Item) string {
	return it.Partition.Topic + "/" + strconv.Itoa(int(it.Partition.Partition))
}

// Pass implements semelkafka.Ledger: it moves the watermark past a message that
// has no effect.
func (l *offsetsLedger) Pass(ctx context.Context, it semelkafka.Item) error {
	p, err := l.position(ctx, &it)
	if err != nil {
		return err
	}
	if p.watermark.Next() > it.Origin.Offset {
		return nil
	}
	if it.From > p.watermark.Next() {
		return gapError(&it, p.watermark.Next())
	}
	err = p.watermark.Do(ctx, pgkafka.Span{First: it.From, Next: it.Origin.Offset + 1, Last: pgkafka.LastMessage(it.Last())}, func(context.Context, pgx.Tx) error { return nil })
	if err != nil {
		p.watermark = nil
		return err
	}
	l.markers.lookup(it.Partition).pass(ctx, it.Message, l.maxAttempts)
	return nil
}

// gapError says that a message cannot be done, because messages between the
// watermark and this one are not done.
func gapError(it *semelkafka.Item, watermark int64) error {
	return fmt.Errorf("kafkapg: topic %q, partition %d: the messages from %d to %d are not done and were not read, because the watermark was set back; start the consumer again: it reads from the watermark",
		it.Partition.Topic, it.Partition.Partition, watermark, it.From-1)
}

func operationOf(partition semelkafka.GroupPartition) string { return partition.Group }
