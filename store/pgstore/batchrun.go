package pgstore

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"

	"github.com/jackc/pgx/v5/pgtype"

	"github.com/semel-go/semel/driver"
	"github.com/semel-go/semel/store/pgstore/internal/handlertx"
	"github.com/semel-go/semel/store/pgstore/internal/pgwire"
	"github.com/semel-go/semel/store/pgstore/internal/table"
)

// runCalls runs one handler for all calls that are not done. If several calls have the
// same key, the first one is in the first round, and the next one waits for the end of
// the first. Usually there is one round.
func (b *batchTry) runCalls(ctx context.Context, fn func([]*PendingCall) error) error {
	round := make([]*batchCall, len(b.calls))
	for i := range b.calls {
		round[i] = &b.calls[i]
	}
	busy := make(map[pgtype.UUID]bool, len(round)) // keys of this round
	admitted, newCalls := make([]*batchCall, 0, len(round)), make([]*PendingCall, 0, len(round))
	for len(round) > 0 {
		var next []*batchCall
		admitted, newCalls = admitted[:0], newCalls[:0]
		clear(busy)
		for _, c := range round {
			if c.steps != nil && busy[c.id] {
				next = append(next, c)
				continue
			}
			if !b.admits(ctx, c) {
				continue
			}
			if x := c.claim(ctx); x != nil {
				admitted, newCalls = append(admitted, c), append(newCalls, &PendingCall{Index: c.index, Execution: x})
				busy[c.id] = true
				continue
			}
			if err := b.finishCall(ctx, c); err != nil {
				return err
			}
		}
		if len(admitted) > 0 {
			if err := b.runHandler(ctx, admitted, newCalls, fn); err != nil {
				return err
			}
		}
		round = next
	}
	return nil
}

func (b *batchTry) runHandler(ctx context.Context, admitted []*batchCall, newCalls []*PendingCall, fn func([]*PendingCall) error) (failed error) {
	settled := 0
	defer func() {
		for _, c := range admitted[settled:] { // their transaction is rolled back
			c.reportReleased(ctx, cmp.Or(failed, errPanicked))
		}
	}()
	b.txUsed = false
	if len(admitted) == 1 {
		b.running = admitted[0]
	}
	b.tx.handler.Lock = handlertx.NewLock(b.tx.store.lockOf(admitted[0].id))
	handlerErr := driver.ReadableError(fn(slices.Clone(newCalls)))
	b.running = nil
	conn := b.tx.pipeline.Conn()
	hasEnded := handlertx.HasEnded(conn) || (handlerErr != nil || handlertx.IsUnread(conn)) && b.tx.endedUnnamed(ctx)
	handlerErr = b.tx.closeUnread(handlerErr)
	status := b.txStatus()
	if hasEnded {
		b.tx.ended = true
		return handlertx.ErrEnded
	}
	if b.tx.handler.Refused() && handlerErr == nil {
		handlerErr = handlertx.ErrEnded
	}
	if handlerErr == nil && status == openTx { // a failed transaction takes no check
		b.tx.queueCheck()
	}
	if len(admitted) == 1 && handlerErr == nil && status == failedTx {
		handlerErr = newCalls[0].Err // PendingCall.Err reports the statement that failed
	}
	if len(admitted) > 1 && status != brokenTx && (handlerErr != nil || status == failedTx) && !pgwire.Again(handlerErr) && !table.LostRace(handlerErr) {
		return fmt.Errorf("%w: %v", errSplitBatch, handlerErr) //nolint:errorlint // it may wrap the error of another batch
	}
	handlerErr, err := b.afterHandler(ctx, handlerErr)
	if err != nil {
		return err
	}
	for i, c := range admitted {
		newCall := newCalls[i]
		if c.handlerErr = driver.ReadableError(newCall.Err); handlerErr != nil {
			c.handlerErr = handlerErr
		}
		settled++
		c.settle(ctx, newCall.Outcome)
		if (c.hasSavepoint || c.swapped) && c.undone() && len(admitted) > 1 {
			return errSplitBatch // rolling back to its savepoint would undo the writes for other calls
		}
		if err := b.finishCall(ctx, c); err != nil {
			return err
		}
	}
	return nil
}

// finishCall does the work that the end of a call requires. If it returns an error,
// the transaction cannot go on.
func (b *batchTry) finishCall(ctx context.Context, c *batchCall) error {
	if c.prefetched.inserted != nil && !c.prefetched.confirmed {
		return errPrefetchDiffers
	}
	undone := error(nil)
	if c.undone() {
		undone = c.err
		if c.pendingClaim != nil && b.tx.pending[c.id] == c.pendingClaim {
			delete(b.tx.pending, c.id)
		}
	}
	if c.hasSavepoint || c.swapped {
		if err := b.endSavepoint(ctx, saveSwap, undone); err != nil {
			return err
		}
	}
	if c.err != nil && b.txStatus() != openTx {
		return fmt.Errorf("the transaction failed: %w", c.err)
	}
	b.hasWrites = b.hasWrites || c.swapped
	if c.undone() && b.tx.countsAsAttempt(c.handlerErr) {
		b.recordFailure(c)
	}
	return nil
}

func (b *batchTry) txStatus() byte {
	conn := b.tx.pipeline.Conn()
	if conn.IsClosed() {
		return brokenTx
	}
	return conn.PgConn().TxStatus()
}

// afterHandler ends the savepoint of the handler, and so undoes the writes of a
// handler that failed. If it returns a second error, the transaction cannot go on.
func (b *batchTry) afterHandler(ctx context.Context, handlerErr error) (error, error) {
	if handlerErr == nil && b.txStatus() == failedTx {
		handlerErr = errHiddenFailure
	}
	switch {
	case pgwire.Again(handlerErr) || table.LostRace(handlerErr):
		return nil, handlerErr
	case b.tx.unread:
		return nil, handlerErr
	case b.txStatus() == brokenTx:
		return nil, fmt.Errorf("%w: %w", errConnectionBroke, cmp.Or(handlerErr, errConnectionClosed))
	case !b.txUsed:
		return handlerErr, nil
	}
	b.hasSavepoint = false
	err := b.endSavepoint(ctx, saveHandler, handlerErr)
	if handlerErr != nil && pgwire.Code(err) == noSavepoint {
		b.tx.ended, err = true, handlertx.ErrEnded // the handler has begun another transaction
	}
	return handlerErr, err
}

// noSavepoint is the SQLSTATE for a savepoint that does not exist.
const noSavepoint = "3B001"

// The savepoints: one before a record is replaced, one before the first statement of
// the handler.
const (
	saveSwap    = handlertx.SaveSwap
	saveHandler = handlertx.SaveHandler
)

// setSavepoint sets a savepoint, if this try uses them.
func (b *batchTry) setSavepoint(ctx context.Context, name string) error {
	if !b.useSavepoints {
		return nil
	}
	start := b.tx.pipeline.Length()
	b.tx.pipeline.Push("SAVEPOINT "+name, nil, nil)
	err := b.tx.limited(ctx, b.tx.pipeline.Flush)
	if err != nil {
		b.tx.pipeline.Cut(start) // so that it is not sent after the statements that it is meant to undo
	}
	return err
}

// endSavepoint releases a savepoint, or rolls back to it after a failure.
func (b *batchTry) endSavepoint(ctx context.Context, name string, failed error) error {
	switch {
	case !b.useSavepoints && failed != nil:
		return errNeedsSavepoints
	case !b.useSavepoints:
		return nil
	case failed == nil: // the next flush sends it
		b.tx.pipeline.Push("RELEASE "+name, nil, nil)
		return nil
	}
	return b.tx.limited(ctx, func(ctx context.Context) error {
		if err := b.tx.pipeline.Flush(ctx); err != nil {
			return err
		}
		// As simple statements, because none can be prepared in a failed transaction.
		_, err := b.tx.session.db.Exec(ctx, "ROLLBACK TO "+name+"; RELEASE "+name)
		return err
	})
}

// markUsed runs before each statement of a handler. If it fails, the statement is not
// sent, and the next statement tries again: only the context of the first one may have
// ended.
func (b *batchTry) markUsed(ctx context.Context) error {
	if b.useSavepoints && !b.hasSavepoint {
		if err := b.setSavepoint(ctx, saveHandler); err != nil {
			return err
		}
		b.hasSavepoint = true
	}
	b.txUsed = true
	return nil
}

// commit writes the records, and commits.
func (b *batchTry) commit(ctx context.Context, t *ownTx) error {
	prefetched := b.prefetch != nil && b.prefetch.written > 0
	if prefetched && b.prefetch.confirmed != b.prefetch.written {
		return errPrefetchDiffers
	}
	if len(b.tx.pending) == 0 && !b.hasWrites && !prefetched {
		if sql, _ := t.finished.Check(); sql != "" { // the handler may have committed, and no COMMIT will check that
			b.tx.queueCheck()
			if err := t.limited(ctx, b.tx.pipeline.Flush); err != nil {
				return err
			}
		}
		if b.tx.hasStandby {
			return t.limited(ctx, b.tx.store.confirm) // of the records that answer the calls
		}
		return nil // nothing to commit
	}
	b.tx.queueInserts()
	t.claimed = nil
	for i := range b.calls {
		c := &b.calls[i]
		if c.claimed != nil && !c.undone() {
			t.claimed = c.claimed
			break
		}
	}
	err := t.commit(ctx)
	if err == nil || t.ended {
		return err
	}
	broke := b.txStatus() == brokenTx
	t.end()
	committed, known := b.atomic.afterCommit(ctx, t, err)
	switch {
	case committed:
		return nil
	case t.ended:
		return err
	case !known:
		return &unansweredCommit{err}
	case broke:
		return fmt.Errorf("%w at COMMIT: %w", errConnectionBroke, err)
	case (pgwire.Refused(err) || errors.Is(err, pgwire.ErrRolledBack)) && mayBeItsContent(err):
		return fmt.Errorf("%w: %w", errCommitRefused, err)
	}
	return fmt.Errorf("%w: %w", errAtCommit, err)
}

// recordRefused records a failed attempt of a call that is alone in its transaction,
// which the server has refused. It reports false if the store does not accept this
// write either, so that the call is not the cause.
func (b *batchRun) recordRefused(ctx context.Context, err error) bool {
	c := b.alone
	atCommit := errors.Is(err, errCommitRefused) || errors.Is(err, errAtCommit)
	if c == nil || c.claimed == nil || !atCommit || b.atomic.recordAttempt(ctx, c.attempt(), err) != nil {
		return false
	}
	if b.failedKeys == nil {
		b.failedKeys = map[pgtype.UUID]bool{}
	}
	b.failedKeys[c.id] = true
	return true
}
