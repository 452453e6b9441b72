package kafkapg

import (
	"context"
	"errors"

	"github.com/semel-go/semel/consume/driver"
)

// beginPartition writes the crash marker of a message's partition if this was not
// done yet. It returns the marker if the partition is isolated, and otherwise nil.
func (b *offsetsBatch) beginPartition(ctx context.Context, i int) (*partitionMarker, error) {
	it := &b.items[i]
	if i > 0 && b.notIsolated && b.items[i-1].Partition == it.Partition {
		return nil, nil
	}
	if _, blocked := b.blocked[it.Partition]; blocked { // newSpans sets the message's result
		return nil, nil
	}
	if _, err := b.askPosition(ctx, it); err != nil {
		return nil, err
	}
	p, err := b.markers.begin(ctx, b.store, it)
	b.noteAnswer(ctx, err)
	b.notIsolated = err == nil && p.isolatedLeft == 0
	if err != nil || b.notIsolated {
		return nil, err
	}
	return p, nil
}

// tryMarked is try. If the partition is isolated, there is one message, and its
// try is written to the crash marker before.
func (b *offsetsBatch) tryMarked(ctx context.Context, spans []*span) (unmoved *span, err error) {
	if b.marker == nil {
		return b.try(ctx, spans)
	}
	m := b.items[spans[0].indexes[0]].Message
	open := b.marker.openTries(m)
	if n := spans[0].position.failuresOf(m) + open; open > 0 && b.maxAttempts >= 0 && n >= b.maxAttempts {
		return nil, &crashedError{open, n}
	}
	if err := b.marker.beginTry(ctx, m, b.maxAttempts); err != nil {
		b.noteAnswer(ctx, err)
		return nil, err
	}
	if unmoved, err = b.try(ctx, spans); err != nil {
		b.marker.endTry(ctx, m, b.maxAttempts)
	} else {
		b.marker.finish(m, true)
	}
	return unmoved, err
}

// endUntried sets the result of a message that tryMarked did not try, and reports
// whether err says so.
func (b *offsetsBatch) endUntried(s *span, err error) bool {
	if e, ok := errors.AsType[*crashedError](err); ok {
		b.results[s.indexes[0]] = driver.Result{Err: e.failure(), FromHandler: true, Attempt: e.attempts}
		b.blocked[s.partition] = delayed(operationOf(s.partition))
		return true
	}
	e, ok := errors.AsType[*markerError](err)
	if ok {
		b.markers.restart(b.marker)
		b.block(s.partition, s.indexes, e.result(operationOf(s.partition)))
	}
	return ok
}
