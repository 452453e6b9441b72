package kafkapg

import (
	"context"
	"slices"

	"github.com/semel-go/semel"
	"github.com/semel-go/semel/consume"
	"github.com/semel-go/semel/consume/driver"
	"github.com/semel-go/semel/consume/semelkafka"
	"github.com/semel-go/semel/store"
)

// beginPartitions writes the crash markers of a batch's partitions, and reports
// whether any partition is isolated.
func (l *keyedLedger) beginPartitions(ctx context.Context, items []semelkafka.Item) (isolated bool, err error) {
	for i := range items {
		if i > 0 && items[i].Partition == items[i-1].Partition {
			continue
		}
		p, err := l.markers.begin(ctx, l.atomic.Store(), &items[i])
		if err != nil {
			return false, err
		}
		isolated = isolated || p.isolatedLeft > 0
	}
	return isolated, nil
}

// unavailableResults returns the results of a batch of which nothing was done.
func unavailableResults(items []semelkafka.Item, err error) []driver.Result {
	cause := &semel.Error{Reason: semel.ErrUnavailable, Operation: operationOf(items[0].Partition), Cause: err}
	return slices.Repeat([]driver.Result{{Err: cause}}, len(items))
}

// partedBatch is a batch that is handled in several parts, because some of its
// partitions are isolated, or in one part, because some of its messages are redriven.
type partedBatch struct {
	*keyedLedger
	results []driver.Result
	blocked map[string]bool                     // order keys with a message that has failed or is not done
	fenced  map[semelkafka.GroupPartition]error // partitions that have another owner
	outage  error                               // if not nil, no further message runs
}

// handleParts handles a batch in the order of its messages. Messages of isolated
// partitions run one by one, and the messages between them together.
func (l *keyedLedger) handleParts(ctx context.Context, items []semelkafka.Item) []driver.Result {
	b := &partedBatch{
		keyedLedger: l, results: make([]driver.Result, len(items)),
		blocked: map[string]bool{}, fenced: map[semelkafka.GroupPartition]error{},
	}
	for i := 0; i < len(items); {
		p := l.isolatedMarker(items[i].Partition)
		next := i + 1
		for p == nil && next < len(items) && l.isolatedMarker(items[next].Partition) == nil {
			next++
		}
		b.handlePart(ctx, items[i:next], b.results[i:next], p)
		i = next
	}
	return b.results
}

// isolatedMarker returns the marker of an isolated partition, and nil if the
// partition is not isolated.
func (l *keyedLedger) isolatedMarker(partition semelkafka.GroupPartition) *partitionMarker {
	if p := l.markers.lookup(partition); p != nil && p.isolatedLeft > 0 {
		return p
	}
	return nil
}

// handlePart handles some messages of the batch in one transaction. If p is not
// nil, there is one message, and its try is written to the crash marker.
func (b *partedBatch) handlePart(ctx context.Context, items []semelkafka.Item, results []driver.Result, p *partitionMarker) {
	ready, indexes := make([]semelkafka.Item, 0, len(items)), make([]int, 0, len(items))
	for i := range items {
		switch it := &items[i]; {
		case b.outage != nil:
			results[i].Err = b.outage
		case b.fenced[it.Partition] != nil:
			results[i].Err = b.fenced[it.Partition]
		case it.OrderKey != "" && b.blocked[it.OrderKey]:
			results[i].Err = delayed("")
		default:
			ready, indexes = append(ready, *it), append(indexes, i)
		}
	}
	if len(ready) == 0 {
		return
	}
	part := b.newBatch(ready, func(m *consume.Message) (semel.Call, error) { return b.identifyReopened(ctx, m) })
	part.marker = p
	// The part needs a Prefetcher of its own, because the ledger's has prefetched
	// later batches already.
	part.prefetched = b.atomic.Prefetcher().Prefetch(ctx, part.calls)
	for n, result := range part.setResults(ctx, part.prefetched.Run(ctx, part.handleNew)) {
		results[indexes[n]] = result
		b.apply(ctx, part, &ready[n], result)
	}
}

// apply decides what the result of a message means for later messages, and
// updates the crash marker.
func (b *partedBatch) apply(ctx context.Context, part *keyedBatch, it *semelkafka.Item, result driver.Result) {
	d := driver.Decide(result, driver.Policy{})
	again := d.Action == driver.Hold || d.Action == driver.Retry
	if again || result.Err != nil && result.Attempt > 0 { // the dead letter is stored before later messages run
		b.blocked[it.OrderKey] = true
	}
	switch {
	case d.Reason == driver.ReasonUnavailable && store.Affects(result.Err) == store.ExtentStore:
		b.outage = result.Err
	case d.Reason == driver.ReasonLeaseLost && part.marker != nil:
		b.fenced[it.Partition] = result.Err
		b.markers.restart(part.marker)
	}
	switch {
	case again && part.tryWritten:
		part.marker.endTry(ctx, it.Message, part.maxAttempts)
	case !again:
		part.marker.finish(it.Message, result.Attempt > 0)
	}
}
