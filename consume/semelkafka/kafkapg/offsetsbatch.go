package kafkapg

import (
	"context"
	"errors"
	"fmt"
	"slices"

	"github.com/semel-go/semel"
	"github.com/semel-go/semel/consume/driver"
	"github.com/semel-go/semel/consume/semelkafka"
	"github.com/semel-go/semel/store/pgstore"
	"github.com/semel-go/semel/store/pgstore/pgkafka"
)

// offsetsBatch is a batch of ServeOffsets.
type offsetsBatch struct {
	*offsetsLedger
	items       []semelkafka.Item
	results     []driver.Result
	blocked     map[semelkafka.GroupPartition]error // the error of all further messages of a partition in this batch
	noAnswer    error                               // the database gave no answer in time; nil: it did
	notIsolated bool                                // the partition that beginPartition saw last is not isolated
	marker      *partitionMarker                    // of the message of an isolated partition that is handled now; otherwise nil
}

// Handle implements semelkafka.Ledger.
func (l *offsetsLedger) Handle(ctx context.Context, items []semelkafka.Item) []driver.Result {
	b := &offsetsBatch{offsetsLedger: l, items: items, results: make([]driver.Result, len(items)), blocked: map[semelkafka.GroupPartition]error{}}
	together := make([]int, 0, len(items))
	handleTogether := func() {
		for part := range slices.Chunk(together, semelkafka.MaxBatch) {
			b.handlePart(ctx, part)
		}
		together = together[:0]
	}
	for i := range items {
		switch p, err := b.beginPartition(ctx, i); {
		case err != nil:
			b.block(items[i].Partition, []int{i}, semelError(semel.ErrUnavailable, items[i].Partition, err))
		case p == nil:
			together = append(together, i)
		default:
			handleTogether() // the earlier messages come first
			b.marker = p
			b.handlePart(ctx, []int{i})
			b.marker = nil
		}
	}
	handleTogether()
	return b.results
}

// span is the messages of one partition that a transaction handles, with the
// watermark before and after it.
type span struct {
	pgkafka.Span
	position  *position
	partition semelkafka.GroupPartition
	indexes   []int // of the messages in the batch
}

// handlePart handles some messages of the batch in one transaction, or in several
// if one is not possible.
func (b *offsetsBatch) handlePart(ctx context.Context, indexes []int) {
	for {
		spans := b.newSpans(ctx, indexes)
		if len(spans) == 0 {
			return
		}
		unmoved, err := b.tryMarked(ctx, spans)
		var tried []int
		for _, s := range spans {
			tried = append(tried, s.indexes...)
		}
		switch {
		case err == nil:
			return
		case b.endUntried(spans[0], err):
			return
		case unmoved != nil && errors.Is(err, pgkafka.ErrBehind):
			// An earlier COMMIT without an answer has succeeded. Own the partition
			// again, and go on after the messages that are done.
			unmoved.position.watermark = nil
			indexes = tried
		case unmoved != nil && errors.Is(err, pgkafka.ErrFenced):
			unmoved.position.watermark = nil
			b.block(unmoved.partition, unmoved.indexes, semelError(semel.ErrLeaseLost, unmoved.partition, err))
			indexes = tried
		case !mayBeOneMessage(err), ctx.Err() != nil: // if it was interrupted, no message is the cause, whatever the handler says
			b.noteAnswer(ctx, err)
			for _, s := range spans {
				s.position.watermark = nil
				b.block(s.partition, s.indexes, semelError(semel.ErrUnavailable, s.partition, err))
			}
			return
		case len(tried) > 1:
			b.handlePart(ctx, tried[:len(tried)/2])
			b.handlePart(ctx, tried[len(tried)/2:])
			return
		default:
			b.endFailed(ctx, spans[0], err)
			return
		}
	}
}

// newSpans groups messages by partition. It sets the results of the messages that
// are done already or cannot be handled.
func (b *offsetsBatch) newSpans(ctx context.Context, indexes []int) (spans []*span) {
	for _, i := range indexes {
		it := &b.items[i]
		if err := b.blocked[it.Partition]; err != nil {
			b.results[i].Err = err
			continue
		}
		p, err := b.askPosition(ctx, it)
		if err != nil {
			b.block(it.Partition, []int{i}, semelError(semel.ErrUnavailable, it.Partition, err))
			continue
		}
		if it.Origin.Offset < p.watermark.Next() {
			b.results[i] = driver.Result{Replayed: true}
			continue
		}
		n := len(spans)
		if n == 0 || spans[n-1].partition != it.Partition {
			spans = append(spans, &span{position: p, partition: it.Partition, Span: pgkafka.Span{First: p.watermark.Next(), Next: p.watermark.Next()}})
			n++
		}
		s := spans[n-1]
		if it.From > s.Next {
			b.block(it.Partition, []int{i}, semelError(semel.ErrUnavailable, it.Partition, gapError(it, s.Next)))
			continue
		}
		s.indexes, s.Next, s.Last = append(s.indexes, i), it.Origin.Offset+1, pgkafka.LastMessage(it.Last())
	}
	return slices.DeleteFunc(spans, func(s *span) bool { return len(s.indexes) == 0 })
}

// askPosition is position, but it asks a database that has given no answer only once in a
// batch. Otherwise each partition of the batch would wait for the limit again.
func (b *offsetsBatch) askPosition(ctx context.Context, it *semelkafka.Item) (*position, error) {
	if b.noAnswer != nil {
		return nil, b.noAnswer
	}
	p, err := b.position(ctx, it)
	b.noteAnswer(ctx, err)
	return p, err
}

// noteAnswer remembers an error that says that the database gave no answer in time.
func (b *offsetsBatch) noteAnswer(ctx context.Context, err error) {
	if errors.Is(err, context.DeadlineExceeded) && ctx.Err() == nil {
		b.noAnswer = err
	}
}

// block ends messages of a partition with an error, and all later ones of that
// partition in this batch too.
func (b *offsetsBatch) block(partition semelkafka.GroupPartition, indexes []int, err error) {
	for _, i := range indexes {
		b.results[i] = driver.Result{Err: err}
	}
	if b.blocked[partition] == nil {
		b.blocked[partition] = err
	}
}

func semelError(reason error, partition semelkafka.GroupPartition, cause error) error {
	return &semel.Error{Reason: reason, Operation: operationOf(partition), Cause: cause}
}

// endFailed ends a message that failed alone. Later messages of its partition
// wait.
func (b *offsetsBatch) endFailed(ctx context.Context, s *span, err error) {
	i := s.indexes[0]
	h, ok := errors.AsType[*handlerError](err)
	isIdle := errors.Is(err, pgkafka.ErrIdle)
	mayBeServer := errors.Is(err, pgkafka.ErrBroken) || isIdle || ok && (h.connectionBroken || mayBeServerFailure(h.error))
	if mayBeServer && !b.databaseAnswers(ctx, s) {
		b.block(s.partition, s.indexes, semelError(semel.ErrUnavailable, s.partition, err))
		return
	}
	if errors.Is(err, pgstore.ErrBusy) && s.position.isBusy(b.items[i].Origin.Offset) { // other transactions are the cause
		b.block(s.partition, s.indexes, semelError(semel.ErrInProgress, s.partition, err))
		return
	}
	m := b.items[i].Message
	s.position.failedOffset, s.position.failures = m.Origin.Offset, s.position.failuresOf(m)+1
	attempt := s.position.failures + b.marker.openTries(m)
	switch {
	case !ok:
		err = fmt.Errorf("the transaction: %w", err)
	case !isIdle: // otherwise err tells more
		err = h.error
	}
	b.results[i] = driver.Result{Err: limitAttempts(err, attempt, b.maxAttempts), FromHandler: true, Attempt: attempt}
	b.blocked[s.partition] = delayed(operationOf(s.partition))
}

// maxBusy is how often a message may be in conflict with other transactions, each
// time after several tries, before that counts as its own failure: a trigger may
// raise the same error for it each time.
const maxBusy = 10

// isBusy notes a conflict of a message that was alone, and reports whether other
// transactions may still be the cause.
func (p *position) isBusy(offset int64) bool {
	if p.busyOffset != offset {
		p.busyOffset, p.busy = offset, 0
	}
	p.busy++
	return p.busy <= maxBusy
}

// databaseAnswers reports whether the database accepts a write: it owns the
// partition again. If it does, a single message that lost its connection, or that
// the server refused, may be the cause; if it does not, no message is.
func (b *offsetsBatch) databaseAnswers(ctx context.Context, s *span) bool {
	s.position.watermark = nil
	p, err := b.askPosition(ctx, &b.items[s.indexes[0]])
	if err == nil {
		s.position = p
	}
	return err == nil
}
