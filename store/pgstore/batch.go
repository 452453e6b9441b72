package pgstore

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/jackc/pgx/v5/pgtype"

	"github.com/semel-go/semel"
	"github.com/semel-go/semel/driver"
	"github.com/semel-go/semel/store"
	"github.com/semel-go/semel/store/pgstore/internal/handlertx"
	"github.com/semel-go/semel/store/pgstore/internal/pgwire"
	"github.com/semel-go/semel/store/pgstore/internal/table"
)

// BatchResult is the result and the error of one call of a batch, as [Atomic.Run] would return
// them.
type BatchResult struct {
	semel.Result
	Err error
}

// PendingCall is a call of a batch that is not done yet. The handler does the work of the
// call, and may set Outcome and Err.
type PendingCall struct {
	Index     int              // the index of the call in the batch
	Execution *semel.Execution // the run of the call: its key, attempt and fencing token
	// Outcome is the result that duplicates get. It may be zero.
	Outcome store.Outcome
	// Err says that the call has failed, and that the handler has written nothing for
	// it. The other calls go on. A *semel.Failure is recorded as the result, and
	// semel.NoEffect is not recorded. Any other error is recorded as a failed attempt.
	Err error
}

// RunBatch runs fn once for all calls that are not done yet, in one transaction, so
// that fn can write their rows in one statement. It is meant for the messages of one
// poll of a broker. [TxFrom] gives fn the transaction. RunBatch returns after the
// commit, with the results in the order of calls. If all calls are done, fn does not
// run. Of several calls with the same key the first one runs, and the others get its
// result, or semel.ErrReleased if it failed. RunBatch does not wait for a key that
// another transaction is running, even if Call.Wait is set: such a call ends with
// semel.ErrInProgress.
//
// If fn cannot do one call, it sets PendingCall.Err, and the other calls go on. If fn
// returns an error, the writes are undone, and fn runs again for each half of the batch,
// until the failing call is alone. So fn may run several times, and must have no effect
// outside of the transaction. For refused commits and broken connections, see "Batches"
// in the package documentation.
func (a *Atomic) RunBatch(ctx context.Context, calls []semel.Call, fn func(ctx context.Context, newCalls []*PendingCall) error) []BatchResult {
	return a.runBatch(ctx, nil, calls, fn)
}

func (a *Atomic) runBatch(ctx context.Context, prefetched *PrefetchedBatch, calls []semel.Call, fn func(ctx context.Context, newCalls []*PendingCall) error) []BatchResult {
	b := &batchRun{atomic: a, calls: calls, results: make([]BatchResult, len(calls)), events: make([]driver.TxEvents, len(calls)), handler: fn, prefetched: prefetched}
	if prefetched != nil {
		prefetched.run = b
	}
	defer b.reportEnds(ctx) // also if fn panics
	if _, ok := a.store.inside(ctx); ok {
		b.fail(ctx, all(len(calls)), errors.New("pgstore: RunBatch inside a handler of the same store; run its calls one by one, with Run"))
		return b.results
	}
	b.run(ctx)
	return b.results
}

// reportEnds reports how the calls have ended.
func (b *batchRun) reportEnds(ctx context.Context) {
	for i := range b.events {
		b.atomic.reportEnd(ctx, &b.events[i], b.calls[i], b.results[i].Err)
	}
}

// reportEnd reports how a call has ended. A call without an event of its own did not run.
func (a *Atomic) reportEnd(ctx context.Context, events *driver.TxEvents, call semel.Call, err error) {
	if events.End(err) || err == nil {
		return
	}
	if steps, invalid := driver.NewTxCall(a.guard, call); invalid == nil {
		steps.Refuse(ctx, err)
	}
}

// maxTogether limits the calls of one transaction, because each takes an advisory
// lock.
const maxTogether = 1000

// batchRun is one call of RunBatch.
type batchRun struct {
	atomic  *Atomic
	calls   []semel.Call
	results []BatchResult
	events  []driver.TxEvents
	handler func(ctx context.Context, newCalls []*PendingCall) error

	failedKeys map[pgtype.UUID]bool // keys with a failed attempt in this batch
	prefetched *PrefetchedBatch     // the prefetched batch that this runs, or nil
	outage     error                // ends all remaining calls; nil: there is none
	current    *batchTry            // the try in progress, or nil
	alone      *batchCall           // the call of the last try, if it was the only one
}

func all(n int) []int {
	which := make([]int, n)
	for i := range which {
		which[i] = i
	}
	return which
}

func (b *batchRun) run(ctx context.Context) {
	for which := range slices.Chunk(all(len(b.calls)), maxTogether) {
		// After a failed call more failures are likely, so the next batches
		// begin with savepoints.
		useSavepoints := b.atomic.savepointBatches.Add(-1) >= 0
		if !useSavepoints {
			b.atomic.savepointBatches.Add(1)
		}
		b.runPart(ctx, which, useSavepoints)
	}
}

// wholeTries is how often a batch that conflicts with other transactions runs whole.
const wholeTries = 3

// runPart runs some of the calls in one transaction or, if that is not possible, in
// halves.
func (b *batchRun) runPart(ctx context.Context, which []int, useSavepoints bool) {
	if b.outage != nil {
		b.fail(ctx, which, b.outage)
		return
	}
	useSavepoints = useSavepoints || len(which) == 1 // so that a call that fails does not run twice
	for refusals, pause := 1, 5*time.Millisecond; ; refusals, pause = refusals+1, pause*3/2 {
		err := b.try(ctx, which, useSavepoints)
		conflicts := pgwire.Again(err) || table.LostRace(err)
		switch {
		case err == nil:
			return
		case errors.Is(err, errPrefetchDiffers):
			b.atomic.savepointBatches.Store(10)
			continue
		case errors.Is(err, errNeedsSavepoints):
			useSavepoints = true
			b.atomic.savepointBatches.Store(10)
			continue
		case len(which) > 1 && (mustSplit(err) || conflicts && refusals >= wholeTries):
			half := len(which) / 2
			b.runPart(ctx, which[:half], useSavepoints)
			b.runPart(ctx, which[half:], useSavepoints)
			return
		case conflicts && refusals < pgwire.Tries && pgwire.Sleep(ctx, pause):
			continue
		}
		switch {
		case !conflicts && !mustSplit(err): // otherwise the cause may be one of these calls
			b.outage = err
			b.fail(ctx, which, err)
		case len(which) == 1 && b.recordRefused(ctx, err) && !conflicts:
			b.end(which, pgwire.Explain("batch", err))
		default:
			b.fail(ctx, which, err)
		}
		return
	}
}

// end ends calls with an error of their handler.
func (b *batchRun) end(which []int, err error) {
	for _, i := range which {
		b.results[i] = BatchResult{Err: err}
	}
}

// fail ends calls with an error that is not a failure of their handler.
func (b *batchRun) fail(ctx context.Context, which []int, err error) {
	for _, i := range which {
		b.results[i] = BatchResult{Err: unavailable(ctx, b.calls[i], pgwire.Explain("batch", err))}
	}
}

// endInDoubt ends the calls of a transaction that its handler may have committed. A
// call that has not claimed its key has written nothing, so it is not in doubt. If the
// server does not answer, the remaining calls of the batch do not run.
func (b *batchRun) endInDoubt(ctx context.Context, batch *batchTry, err error) {
	notDone, unknown := handlertx.ErrEnded, errors.Is(err, errFateUnknown)
	if unknown {
		notDone, b.outage = errFateUnknown, errFateUnknown
	}
	for i := range batch.calls {
		c := &batch.calls[i]
		switch {
		case c.claimed == nil:
			b.fail(ctx, []int{c.index}, notDone)
		case unknown:
			b.fail(ctx, []int{c.index}, err)
		default:
			b.end([]int{c.index}, err)
		}
	}
}

// failInDoubt ends the calls of a transaction whose COMMIT got no answer. A call whose
// writes were not in the transaction is not in doubt. The remaining calls of the batch
// do not run, because they may have to come after these.
func (b *batchRun) failInDoubt(ctx context.Context, batch *batchTry, unanswered *unansweredCommit) {
	b.outage = fmt.Errorf("a COMMIT of the batch got no answer: %w", unanswered.cause)
	for i := range batch.calls {
		c := &batch.calls[i]
		err := b.outage
		if c.claimed != nil && !c.undone() {
			err = unanswered
		}
		b.fail(ctx, []int{c.index}, err)
	}
}

// batchCall is one call of a batch, and the store.Tx that its steps use. The keys of
// all calls are looked up in one statement before the steps begin.
type batchCall struct {
	index      int
	batch      *batchTry
	steps      driver.TxCall // nil if the call is invalid
	events     *driver.TxEvents
	id         pgtype.UUID
	prefetched prefetchResult

	swapped      bool // it has replaced a record
	hasSavepoint bool // a savepoint was set before its swap

	proposal     store.Proposal  // the argument of Claim
	claimed      *store.Proposal // the proposal that won, or nil
	replaced     *store.Seen     // the record that claimed has replaced, or nil
	pendingClaim *table.Pending  // the claim, if it is not written yet

	handlerErr error // the error of the handler
	result     semel.Result
	err        error
}

// claim runs the steps up to the handler. It returns nil if the handler must not run
// for this call.
func (c *batchCall) claim(ctx context.Context) (x *semel.Execution) {
	if inserted := c.prefetched.inserted; inserted != nil {
		c.claimed = &c.proposal
		return c.steps.Inserted(c, inserted.fence)
	}
	x, c.result, c.err = c.steps.Claim(c.events.Context(ctx), c)
	return x
}

// settle runs the steps after the handler.
func (c *batchCall) settle(ctx context.Context, outcome store.Outcome) {
	c.result, c.err = c.steps.Settle(c.events.Context(ctx), outcome, c.handlerErr)
}

// reportReleased reports the end of a run that is not settled.
func (c *batchCall) reportReleased(ctx context.Context, cause error) {
	cause = fmt.Errorf("the transaction of the batch was rolled back: %v", cause) //nolint:errorlint // as a Failure it would be kept
	_, _ = c.steps.Settle(c.events.Context(ctx), store.Outcome{}, cause)          // only reports cause
}

// undone reports whether the writes of the call must be undone. Only a *semel.Failure
// that is not wrapped is stored.
func (c *batchCall) undone() bool {
	f, kept := c.err.(*semel.Failure) //nolint:errorlint // see above
	return c.err != nil && (!kept || f == nil)
}

// runsKey reports whether the handler of the batch runs for the key.
func (b *batchTry) runsKey(id pgtype.UUID) bool {
	return b != nil && slices.ContainsFunc(b.calls, func(c batchCall) bool { return c.claimed != nil && c.id == id })
}
