package pgstore

import (
	"context"
	"errors"
	"fmt"
	"maps"

	"github.com/jackc/pgx/v5/pgtype"

	"github.com/semel-go/semel"
	"github.com/semel-go/semel/driver"
	"github.com/semel-go/semel/store"
	"github.com/semel-go/semel/store/pgstore/internal/handlertx"
	"github.com/semel-go/semel/store/pgstore/internal/pgwire"
	"github.com/semel-go/semel/store/pgstore/internal/table"
)

var (
	// errNeedsSavepoints: a call must be undone, and there is no savepoint.
	errNeedsSavepoints = errors.New("the batch needs savepoints")
	// errSplitBatch: the handler failed for several calls together.
	errSplitBatch = errors.New("the batch must be split")
	// errHiddenFailure: a handler returned nil although a statement had failed.
	errHiddenFailure = errors.New("pgstore: the handler returned nil, but one of its statements failed, so that nothing can be committed; return that statement's error, or set a savepoint before it")
	// errCommitRefused: the server refused COMMIT for a reason that may lie in the
	// transaction, and nothing was committed.
	errCommitRefused = errors.New("the server refused COMMIT")
	// errAtCommit: COMMIT failed.
	errAtCommit = errors.New("commit")
	// errConnectionBroke: the connection broke in the handler or at COMMIT, and
	// nothing was committed.
	errConnectionBroke = errors.New("the connection broke")
)

// unansweredCommit is the error of a COMMIT that may have committed.
type unansweredCommit struct{ cause error }

func (e *unansweredCommit) Error() string {
	return fmt.Sprintf("%v: commit: %v", semel.ErrInDoubt, e.cause)
}

func (e *unansweredCommit) Unwrap() []error { return []error{semel.ErrInDoubt, e.cause} }

// mustSplit reports whether the server refused a transaction because it was too large,
// or possibly because of one call in it.
func mustSplit(err error) bool {
	if errors.Is(err, errSplitBatch) || errors.Is(err, errCommitRefused) {
		return true
	}
	return pgwire.Code(err) == pgwire.OutOfMemory || pgwire.RefusedForContent(err) && !table.LostRace(err) // 53200: too many locks
}

// batchTry is one try of a batch in one transaction.
type batchTry struct {
	atomic        *Atomic
	tx            *storeTx
	useSavepoints bool // handlers and swaps run after savepoints

	calls        []batchCall
	failedKeys   map[pgtype.UUID]bool // keys with a failed attempt in this batch
	failedCalls  []*batchCall         // their failed attempts are recorded after the commit
	hasWrites    bool                 // there are writes to commit besides tx.pending
	txUsed       bool                 // the handler has used the transaction
	hasSavepoint bool                 // the savepoint of the handler is set
	running      *batchCall           // the call whose handler runs alone
	prefetch     *prefetch            // nil: the batch was not prefetched
}

func (a *Atomic) newBatchTry(t *storeTx, useSavepoints bool) *batchTry {
	b := &batchTry{atomic: a, useSavepoints: useSavepoints, failedKeys: map[pgtype.UUID]bool{}}
	if t != nil {
		b.setTx(t)
	}
	return b
}

// setTx sets the transaction of the try.
func (b *batchTry) setTx(t *storeTx) {
	b.tx, t.holdSettlements = t, true
}

// try runs some of the calls in one transaction. If it returns an error, the
// transaction was not committed, and no call has a result.
func (b *batchRun) try(ctx context.Context, which []int, useSavepoints bool) error {
	b.alone = nil
	t, batch, err := b.begin(ctx, which, useSavepoints)
	if err != nil {
		return err
	}
	for i := range batch.calls {
		c := &batch.calls[i]
		c.events = &b.events[c.index]
		c.events.Discard()
	}
	returned := false
	defer func() {
		ended := !returned && (batch.txStatus() == noTx || t.endedUnnamed(ctx))
		t.end()
		if !returned { // for their events
			b.end(which, errPanicked)
		}
		switch {
		case returned:
		case (ended || t.finished.XID() != "") && t.mayHaveCommitted(ctx):
			_ = b.atomic.endedByHandler(ctx, t, errPanicked, batch.attempts()...)
		case batch.running != nil:
			_ = b.atomic.recordAttempt(ctx, batch.running.attempt(), errPanicked)
		}
	}()
	t.finished.BeforeUse = batch.markUsed
	inside := withBatch(t.handlerContext(ctx), batch, &t.finished.Bool)
	b.current = batch
	defer func() { b.current = nil }()
	err = batch.runCalls(ctx, func(newCalls []*PendingCall) error { return b.handler(inside, newCalls) })
	if err == nil {
		err = batch.commit(ctx, t)
	}
	if returned = true; len(batch.calls) == 1 {
		b.alone = &batch.calls[0]
	}
	if err != nil && (t.ended || t.finished.XID() != "" && !t.committing) {
		if t.end(); t.mayHaveCommitted(ctx) {
			b.endInDoubt(ctx, batch, b.atomic.endedByHandler(ctx, t, err, batch.attempts()...))
			return nil
		}
	}
	if unanswered, ok := errors.AsType[*unansweredCommit](err); ok {
		b.failInDoubt(ctx, batch, unanswered)
		return nil
	}
	if errors.Is(err, errConnectionBroke) || errors.Is(err, handlertx.ErrUnread) {
		t.end()
		return b.afterBreak(ctx, batch, which, err)
	}
	if err != nil {
		return err
	}
	b.failedKeys = batch.failedKeys
	for i := range batch.calls {
		c := &batch.calls[i]
		b.results[c.index] = BatchResult{c.result, c.err}
		if c.claimed != nil {
			b.atomic.store.notifyEnd(c.id)
		}
	}
	for _, c := range batch.failedCalls {
		_ = b.atomic.recordAttempt(ctx, c.attempt(), c.handlerErr)
	}
	return nil
}

// afterBreak handles a connection that broke in the handler or at COMMIT. One call may
// be the cause, and would break the connection again, so that no other call of the
// batch could ever finish. So if the server answers, the batch is split as after a
// failed handler, and a call that is alone has failed once more.
func (b *batchRun) afterBreak(ctx context.Context, batch *batchTry, which []int, err error) error {
	if ctx.Err() != nil || batch.waitFree(ctx) != nil { // the caller broke it, or the server is down
		return err
	}
	if len(which) > 1 {
		return fmt.Errorf("%w: %w", errSplitBatch, err)
	}
	if c := &batch.calls[0]; batch.tx.countsAsAttempt(err) {
		if b.atomic.recordAttempt(ctx, c.attempt(), err) != nil {
			return err
		}
		batch.failedKeys[c.id] = true
		b.failedKeys = batch.failedKeys
	}
	if errors.Is(err, handlertx.ErrUnread) {
		b.end(which, err)
	} else {
		b.fail(ctx, which, err)
	}
	return nil
}

// waitFree waits until the server has noticed that the connection broke, and has
// released the locks of the keys.
func (b *batchTry) waitFree(ctx context.Context) error {
	var highs, lows []int32
	for i := range b.calls {
		c := &b.calls[i]
		if l := b.tx.keyStates[c.id]; c.claimed != nil || l != nil && l.locked {
			high, low := b.tx.store.lockOf(c.id)
			highs, lows = append(highs, high), append(lows, low)
		}
	}
	return b.tx.limited(ctx, func(ctx context.Context) error {
		_, err := b.tx.store.ownPool.Exec(ctx, `SELECT count(pg_advisory_xact_lock_shared(u.high, u.low)) FROM (SELECT unnest($1::integer[]) AS high, unnest($2::integer[]) AS low) u`, pgwire.Array(highs), pgwire.Array(lows))
		return err
	})
}

// attempts are the calls whose keys the batch has claimed.
func (b *batchTry) attempts() (attempts []*storeTx) {
	for i := range b.calls {
		if c := &b.calls[i]; c.claimed != nil {
			attempts = append(attempts, c.attempt())
		}
	}
	return attempts
}

// attempt is the call as recordAttempt takes it.
func (c *batchCall) attempt() *storeTx { return &storeTx{claimed: c.claimed, replaced: c.replaced} }

// countsAsAttempt reports whether an error that the handler of t returned is a failed
// attempt.
func (t *storeTx) countsAsAttempt(err error) bool {
	return err != nil && !pgwire.Again(err) && !table.LostRace(err) && !t.joinedTaken(err) && !driver.IsNoEffect(err)
}

// recordFailure records a failed attempt, so that it counts.
func (b *batchTry) recordFailure(c *batchCall) {
	if c.claimed == nil {
		return
	}
	b.failedKeys[c.id] = true
	if c.replaced != nil { // the swap was undone
		b.failedCalls = append(b.failedCalls, c)
		return
	}
	claim := &table.Pending{Proposal: *c.claimed, Record: c.pendingClaim.Record}
	claim.Proposal.Owner = newOwnerToken()
	_ = claim.Settle(&store.Settlement{State: store.Released, Attempt: claim.Proposal.Attempt, Error: driver.ErrorText(c.handlerErr), Keep: claim.Proposal.Keep}) // no outcome: it fits
	claim.Record.Owner = claim.Proposal.Owner
	b.tx.pending[c.id] = claim
}

// begin takes over the prefetched transaction, or begins one and looks up the keys.
func (b *batchRun) begin(ctx context.Context, which []int, useSavepoints bool) (*ownTx, *batchTry, error) {
	if t, batch := b.prefetched.takeOver(ctx, useSavepoints); t != nil {
		return t, batch, nil
	}
	t := b.atomic.newOwnTx()
	batch := b.atomic.newBatchTry(&t.storeTx, useSavepoints)
	maps.Copy(batch.failedKeys, b.failedKeys)
	err := t.limited(ctx, func(ctx context.Context) error {
		if err := t.connect(ctx); err != nil {
			return fmt.Errorf("begin: %w", err)
		}
		return batch.lookUpCalls(ctx, which, b.calls)
	})
	if err != nil {
		t.end()
		return nil, nil, err
	}
	return t, batch, nil
}

// insert queues the insert of a pending claim with the state of the proposal. It fails
// if a leased call has inserted the record meanwhile, because leased calls do not take
// the lock of the key.
func (t *storeTx) insert(id pgtype.UUID, claim *table.Pending, proposal store.Proposal) error {
	args, err := table.ProposalArgs(id, &proposal)
	if err != nil {
		return err
	}
	t.pipeline.Push(t.session.sql.Insert, append(args, store.Micros(claim.Record.Created), table.Fence(claim.Record.Fence)), nil)
	if proposal.State == store.Unknown {
		t.queueDoubts(table.InsertRow{ID: id, Pending: &table.Pending{Proposal: proposal}})
	}
	delete(t.pending, id)
	return nil
}

// queueInserts queues the inserts of the pending rows.
func (t *storeTx) queueInserts() {
	for _, rows := range table.InsertRows(t.pending) {
		t.pipeline.Push(t.session.sql.InsertMany, table.InsertArrays(rows), nil)
		t.queueDoubts(rows...)
	}
}

// queueDoubts queues what inserted rows need in addition if they are in doubt.
func (t *storeTx) queueDoubts(rows ...table.InsertRow) {
	var ids []pgtype.UUID
	for i := range rows {
		if rows[i].Proposal.State == store.Unknown {
			ids = append(ids, rows[i].ID)
		}
	}
	if len(ids) > 0 {
		t.pipeline.Push(t.session.sql.AddDoubts, []any{ids}, nil)
	}
}
