package kafkapg

import (
	"context"
	"errors"

	"github.com/semel-go/semel"
	"github.com/semel-go/semel/consume"
	"github.com/semel-go/semel/consume/driver"
	"github.com/semel-go/semel/consume/semelkafka"
	semeldriver "github.com/semel-go/semel/driver"
	"github.com/semel-go/semel/store"
	"github.com/semel-go/semel/store/pgstore"
)

// keyedBatch is a batch of ServeKeyed.
type keyedBatch struct {
	*keyedLedger
	items   []semelkafka.Item
	results []driver.Result
	// One element for each call.
	calls       []semel.Call
	indexes     []int // of the calls' messages in the batch
	messages    []*consume.Message
	handlerErrs []error  // of a message that was alone
	attempts    []int    // the number of the attempt, of a message that was alone
	fences      []uint64 // the fencing token of that attempt
	// blocked has, by order key, the index of the first call that later messages
	// must not overtake: a single message that has failed or may fail at COMMIT,
	// or a message that is not done, such as one whose key is in progress
	// elsewhere.
	blocked    map[string]int
	prefetched *pgstore.PrefetchedBatch
	redriven   bool // a message may reopen its key; then prefetched is empty

	marker     *partitionMarker // of a single message of an isolated partition; otherwise nil
	tryWritten bool             // marker says that the message is tried
}

// Handle implements semelkafka.Ledger.
func (l *keyedLedger) Handle(ctx context.Context, items []semelkafka.Item) []driver.Result {
	return l.Prepare(ctx, items).Handle(ctx)
}

// Prepare implements semelkafka.Preparer.
func (l *keyedLedger) Prepare(ctx context.Context, items []semelkafka.Item) semelkafka.Prepared {
	b := l.newBatch(items, l.identify)
	calls := b.calls
	if b.redriven = l.anyRedriven(items); b.redriven {
		calls = nil // also keeps later batches from looking up a key before it is reopened
	}
	b.prefetched = l.prefetcher.Prefetch(ctx, calls)
	return (*preparedBatch)(b)
}

// preparedBatch implements semelkafka.Prepared.
type preparedBatch keyedBatch

// Handle implements semelkafka.Prepared.
func (p *preparedBatch) Handle(ctx context.Context) []driver.Result {
	b := (*keyedBatch)(p)
	isolated, err := b.beginPartitions(ctx, b.items)
	if err != nil || isolated {
		b.prefetched.Drop()
	}
	switch {
	case err != nil:
		return unavailableResults(b.items, err)
	case b.redriven:
		defer b.prefetched.Drop()
		return b.handleParts(ctx, b.items)
	case isolated:
		return b.handleParts(ctx, b.items)
	}
	return b.setResults(ctx, b.prefetched.Run(ctx, b.handleNew))
}

// Drop implements semelkafka.Prepared.
func (p *preparedBatch) Drop() {
	p.prefetched.Drop()
}

// newBatch finds the calls of messages. A message without a call gets its result
// here.
func (l *keyedLedger) newBatch(items []semelkafka.Item, identify func(*consume.Message) (semel.Call, error)) *keyedBatch {
	b := &keyedBatch{
		keyedLedger: l, items: items, results: make([]driver.Result, len(items)),
		calls: make([]semel.Call, 0, len(items)), indexes: make([]int, 0, len(items)), messages: make([]*consume.Message, 0, len(items)),
		blocked: map[string]int{},
	}
	for i, it := range items {
		c, err := identify(it.Message)
		if err != nil {
			b.results[i].Err = err
			b.blockIfNotDone(it.OrderKey, len(b.calls)-1, err)
			continue
		}
		b.calls, b.indexes, b.messages = append(b.calls, c), append(b.indexes, i), append(b.messages, it.Message)
	}
	b.handlerErrs, b.attempts, b.fences = make([]error, len(b.calls)), make([]int, len(b.calls)), make([]uint64, len(b.calls))
	return b
}

// setResults sets the results of the calls, and returns the results of all
// messages.
func (b *keyedBatch) setResults(ctx context.Context, ended []pgstore.BatchResult) []driver.Result {
	for n, e := range ended {
		r := b.result(n, e)
		r.Fence = driver.FailureFence(ctx, b.reopen, b.calls[n], driver.Decide(r, b.policy))
		b.results[b.indexes[n]] = r
	}
	return b.results
}

// handleNew runs the handler for the calls that have no record, in a transaction
// of the Atomic. It leaves out messages that would overtake an unfinished one.
func (b *keyedBatch) handleNew(ctx context.Context, newCalls []*pgstore.PendingCall) error {
	b.blockUnfinished(newCalls)
	ready := make([]*pgstore.PendingCall, 0, len(newCalls))
	ms := make([]*consume.Message, 0, len(newCalls))
	for _, c := range newCalls {
		m := b.messages[c.Index]
		if first, ok := b.blocked[m.OrderKey]; ok && first < c.Index {
			b.handlerErrs[c.Index] = errEarlierNotDone
			c.Err = semel.NoEffect(errEarlierNotDone)
			continue
		}
		ready, ms = append(ready, c), append(ms, m)
	}
	if len(ready) == 0 {
		return nil
	}
	tx, ok := pgstore.TxFrom(ctx)
	if !ok {
		return errors.New("kafkapg: the context of the handler has no transaction")
	}
	if len(newCalls) > 1 {
		return b.handler.run(ctx, tx, ms)
	}
	return b.handleAlone(ctx, ready[0], func() error { return b.handler.run(ctx, tx, ms) })
}

// blockUnfinished blocks the order keys of earlier calls that are not new and not
// done.
func (b *keyedBatch) blockUnfinished(newCalls []*pgstore.PendingCall) {
	for i := range newCalls[len(newCalls)-1].Index {
		if b.handlerErrs[i] == nil && b.attempts[i] == 0 { // otherwise the call was new too
			b.blockIfNotDone(b.messages[i].OrderKey, i, b.prefetched.Err(i))
		}
	}
}

// blockIfNotDone blocks an order key after index, if err means that the message
// there will come again.
func (b *keyedBatch) blockIfNotDone(orderKey string, index int, err error) {
	if err == nil || orderKey == "" {
		return
	}
	if first, ok := b.blocked[orderKey]; ok && first <= index {
		return
	}
	switch driver.Decide(driver.Result{Err: err}, driver.Policy{}).Action {
	case driver.Hold, driver.Retry:
		b.blocked[orderKey] = index
	}
}

// handleAlone does the work of a single message, counts the attempt, and ends the
// message if its attempts are exhausted. If a single message fails, no other one
// can be the cause.
func (b *keyedBatch) handleAlone(ctx context.Context, c *pgstore.PendingCall, work func() error) (err error) {
	m := b.messages[c.Index]
	b.fences[c.Index] = c.Execution.Fence()
	open := b.marker.openTries(m)
	if b.tryWritten { // the transaction is repeated, and the open try is this one
		open--
	}
	attempt := max(c.Execution.Attempt(), b.uncommitted[m.Origin.ID]+1) + open
	switch {
	case b.maxAttempts < 0 || attempt <= b.maxAttempts:
		if err := b.writeTry(ctx, m); err != nil {
			b.handlerErrs[c.Index], b.attempts[c.Index] = err, 0
			return semel.NoEffect(err)
		}
		b.attempts[c.Index] = attempt
		err = limitAttempts(work(), attempt, b.maxAttempts)
	case open > 0:
		b.attempts[c.Index] = attempt - 1
		err = (&crashedError{open, attempt - 1}).failure()
	default:
		b.attempts[c.Index] = attempt
		err = exhausted(b.maxAttempts, errNotCommitted)
	}
	b.handlerErrs[c.Index] = err
	if m.OrderKey != "" { // even without an error, because COMMIT may still fail
		b.blocked[m.OrderKey] = c.Index
	}
	return err
}

var errNotCommitted = errors.New("its transaction did not commit")

// writeTry writes the try of a message to the crash marker, once.
func (b *keyedBatch) writeTry(ctx context.Context, m *consume.Message) error {
	if b.marker == nil || b.tryWritten {
		return nil
	}
	err := b.marker.beginTry(ctx, m, b.maxAttempts)
	b.tryWritten = err == nil && b.maxAttempts >= 0
	return err
}

// result returns how a call ended, for driver.Decide.
func (b *keyedBatch) result(n int, ended pgstore.BatchResult) driver.Result {
	m, handlerErr := b.messages[n], b.handlerErrs[n]
	if errors.Is(handlerErr, errEarlierNotDone) && ended.Err != nil {
		return driver.Result{Err: delayed("")}
	}
	if e, ok := errors.AsType[*markerError](handlerErr); ok {
		return driver.Result{Err: e.result(b.calls[n].Operation)}
	}
	unavailable := errors.Is(ended.Err, semel.ErrUnavailable) || errors.Is(ended.Err, semel.ErrCanceled)
	if b.attempts[n] > 0 && unavailable && store.Affects(ended.Err) != store.ExtentPart { // the message itself may be the cause
		if len(b.uncommitted) >= maxUncommitted {
			clear(b.uncommitted)
		}
		b.uncommitted[m.Origin.ID]++
	} else {
		delete(b.uncommitted, m.Origin.ID)
	}
	r := driver.Result{Err: ended.Err, Replayed: ended.Replayed, Attempt: b.attempts[n], Fence: b.fences[n], FromHandler: fromHandler(ended.Err, handlerErr)}
	if r.FromHandler && semeldriver.IsNoEffect(handlerErr) { // ended.Err has lost that mark
		r.Err = handlerErr
	}
	return r
}

// fromHandler reports whether the error of a call is the handler's. Both may wrap
// a *semel.Error, because handlers make calls too; then it must be the same one.
func fromHandler(err, handlerErr error) bool {
	if err == nil || handlerErr == nil {
		return false
	}
	e, ok := errors.AsType[*semel.Error](err)
	if !ok {
		return true
	}
	h, _ := errors.AsType[*semel.Error](handlerErr)
	return e == h
}
