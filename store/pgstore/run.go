package pgstore

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"strings"
	"time"

	"github.com/semel-go/semel"
	"github.com/semel-go/semel/driver"
	"github.com/semel-go/semel/store"
	"github.com/semel-go/semel/store/pgstore/internal/handlertx"
	"github.com/semel-go/semel/store/pgstore/internal/pgwire"
	"github.com/semel-go/semel/store/pgstore/internal/table"
)

// Run runs fn once for a call, in a transaction of its own; [TxFrom] gives fn the
// transaction. A Run inside fn, with fn's context, joins the transaction, as with
// [Atomic.In]. Run holds a connection of Atomic's pool while fn runs.
//
//   - If fn returns nil, its writes and the record commit.
//   - If fn returns a *semel.Failure, its writes are undone, and the failure is recorded.
//   - If fn returns semel.NoEffect, the transaction is rolled back.
//   - If fn returns another error, the transaction is rolled back, and a second one records
//     a failed attempt, which MaxAttempts counts.
//   - After a serialization failure or a deadlock fn runs again, up to ten times in all.
//     If the tenth run fails like this, too, the call ends with semel.ErrUnavailable. This
//     counts as one failed attempt if it was COMMIT that failed, and as none otherwise.
//
// For round trips, the rules of fn, concurrent duplicates and failures of COMMIT, see the
// package documentation.
func (a *Atomic) Run(ctx context.Context, call semel.Call, fn semel.Handler) (semel.Result, error) {
	return a.run(ctx, call, fn, nil)
}

// run is Run, or DoSQL if db is not nil.
func (a *Atomic) run(ctx context.Context, call semel.Call, fn semel.Handler, db *sql.DB) (res semel.Result, err error) {
	if in, ok := a.store.inside(ctx); ok {
		if in.sqlTx != nil {
			return a.runIn(ctx, in.sqlTx.Driver, call, func(ctx context.Context, x *semel.Execution) (store.Outcome, error) {
				o, err := fn(a.store.withTx(ctx, &txIn{sqlTx: in.sqlTx, finished: in.finished}), x)
				if handlertx.HasEnded(in.sqlTx.Driver) { // the handler around this one has to see that
					in.sqlTx.Ended = true
					// After the end of this handler's context database/sql would close its rows at any moment.
					err = handlertx.CloseUnread(in.sqlTx.Driver, a.storeTimeout, err)
				}
				return o, err
			})
		}
		return a.In(in.tx).Run(ctx, call, fn)
	}
	a.duplicates.running.Add(1)
	defer a.duplicates.running.Add(-1)
	start, pause := time.Now(), 5*time.Millisecond
	var w waiter
	defer w.leave(a.store.listener)
	var events driver.TxEvents
	defer func() { a.reportEnd(ctx, &events, call, err) }()
	for refused := 0; ; {
		w.join(a.store.listener)
		last := refused == pgwire.Tries-1
		events.Discard()
		res, err = a.try(ctx, call, fn, &w, db, &events, last)
		switch {
		case refusedForNow(err):
			if refused++; last {
				return semel.Result{}, unavailable(ctx, call, err)
			}
		case errors.Is(err, semel.ErrInProgress) && !w.ran && time.Since(start) < call.Wait:
			pause = min(pause*3/2, 250*time.Millisecond, call.Wait)
			if w.next(); w.waitedForRecord {
				pause = max(pause, a.recordDelay)
			} else if w.notification != nil {
				pause = min(a.store.options.notifiedPoll, call.Wait)
			}
		default:
			return res, err
		}
		if !w.sleep(ctx, pause) {
			if refusedForNow(err) {
				err = unavailable(ctx, call, err)
			}
			return semel.Result{}, err
		}
	}
}

// refusedForNow reports whether a run that ended with err may run again.
func refusedForNow(err error) bool {
	again := pgwire.Again(err) || table.LostRace(err) || errors.Is(err, store.ErrStepRecorded)
	return again && !errors.Is(err, semel.ErrInDoubt)
}

// mayBeItsContent reports whether a COMMIT was refused for a reason that may lie in the
// transaction, whatever the code: a trigger can raise any. It is false for conflicts,
// which may pass, and if the server itself ends or has no room. Whether the store
// accepts another write decides.
func mayBeItsContent(err error) bool {
	serverEnds := strings.HasPrefix(pgwire.Code(err), "57P") || pgwire.Code(err) == pgwire.DiskFull
	return !refusedForNow(err) && (!serverEnds || pgwire.RefusedForContent(err))
}

// unavailable is the error of a call that the store did not answer, or that ended
// because ctx has ended.
func unavailable(ctx context.Context, call semel.Call, err error) error {
	reason := semel.ErrUnavailable
	if ctx.Err() != nil {
		reason = semel.ErrCanceled
	}
	return &semel.Error{Reason: reason, Operation: call.Operation, Cause: err}
}

// try runs fn in one transaction. If last, a conflict at COMMIT is a failed attempt too,
// because it may be the handler's own doing: a deferred trigger can raise its code.
func (a *Atomic) try(ctx context.Context, call semel.Call, fn semel.Handler, w *waiter, db *sql.DB, events *driver.TxEvents, last bool) (res semel.Result, err error) {
	t := a.newOwnTx()
	t.sqlDB = db
	defer t.end()
	var handlerErr error
	var running *semel.Execution // nil: the handler has not begun
	returned, notAdmitted := false, false
	var cause error // what the handler itself returned
	defer func() {
		if running != nil && !returned {
			if t.end(); t.ended || t.uncertain {
				_ = a.endedByHandler(ctx, t, errPanicked, &t.storeTx)
			} else {
				_ = a.recordAttempt(ctx, &t.storeTx, errPanicked)
			}
		}
		if w.id = t.lastID; running != nil {
			t.end()
			a.store.notifyEnd(t.lastID) // after a commit, and after a rollback
		}
	}()
	res, err = driver.RunIn(events.Context(ctx), a.guard, t, call, func(run context.Context, x *semel.Execution) (store.Outcome, error) {
		if err := w.admit(call, x); err != nil {
			notAdmitted = true
			return store.Outcome{}, err
		}
		running = x
		defer func() {
			if !returned { // before the transaction is rolled back
				_ = t.afterHandler(ctx, errPanicked)
			}
		}()
		if t.claimed != nil { // a step has no lock
			t.finished.Lock = handlertx.NewLock(t.store.lockOf(t.lastID))
		}
		o, err := fn(a.store.withRun(t.handlerContext(run), t.lastID, &t.finished.Bool), x)
		err = driver.ReadableError(err)
		cause = err
		err = t.afterHandler(ctx, err)
		returned, handlerErr = true, err
		return o, err
	})
	if notAdmitted {
		events.Discard() // no attempt was released
	}
	// A Failure that is kept comes bare; one inside NoEffect was not kept.
	if f, kept := err.(*semel.Failure); err != nil && (!kept || f == nil) { //nolint:errorlint // see above
		t.end()
		w.ran = running != nil && !t.joinedTaken(handlerErr)
		if t.ended || t.uncertain && t.mayHaveCommitted(ctx) {
			return semel.Result{}, a.endedCall(ctx, t, call, cause)
		}
		if t.countsAsAttempt(handlerErr) {
			_ = a.recordAttempt(ctx, &t.storeTx, handlerErr)
		}
		if running == nil && errors.Is(err, semel.ErrNotKept) { // a duplicate learns that the work is done
			return a.confirmFound(ctx, t, call, res, err)
		}
		return res, err // with ErrNotKept the result is not empty
	}
	if running == nil { // there is nothing to commit
		t.end()
		return a.confirmFound(ctx, t, call, res, err)
	}
	if t.uncertain && t.restarted && t.mayHaveCommitted(ctx) {
		return semel.Result{}, a.endedCall(ctx, t, call, cause)
	}
	commitErr := t.commit(ctx)
	if commitErr == nil {
		driver.Committed(running)
		return res, err
	}
	t.end()
	committed, known := false, true
	if !t.ended {
		committed, known = a.afterCommit(ctx, t, commitErr)
	}
	switch {
	case committed:
		return res, err
	case t.ended:
		return semel.Result{}, a.endedCall(ctx, t, call, nil)
	}
	answered := pgwire.Refused(commitErr) || pgwire.EndsConnection(commitErr) || errors.Is(commitErr, pgwire.ErrRolledBack)
	if known && answered && mayBeItsContent(commitErr) && a.recordAttempt(ctx, &t.storeTx, commitErr) == nil {
		// The store accepts another write, so the transaction itself is the cause.
		return semel.Result{}, pgwire.Explain("commit", commitErr)
	}
	if commitErr = pgwire.Explain("commit", commitErr); !known {
		commitErr = fmt.Errorf("%w: %w", semel.ErrInDoubt, commitErr)
	}
	if refusedForNow(commitErr) {
		if last && !table.LostRace(commitErr) {
			_ = a.recordAttempt(ctx, &t.storeTx, commitErr)
		}
		return semel.Result{}, commitErr
	}
	return semel.Result{}, unavailable(ctx, call, commitErr)
}

// endedCall is endedByHandler for a single call.
func (a *Atomic) endedCall(ctx context.Context, t *ownTx, call semel.Call, cause error) error {
	err := a.endedByHandler(ctx, t, cause, &t.storeTx)
	if errors.Is(err, errFateUnknown) || errors.Is(err, errUndone) {
		return unavailable(ctx, call, err)
	}
	return err
}

// limited runs a call of the store within StoreTimeout. Statements of the handler have
// no limit but their context, and a transaction of the caller has no limit at all.
func (t *storeTx) limited(ctx context.Context, call func(ctx context.Context) error) error {
	return pgwire.Limited(ctx, t.limit, call)
}

// recordAttempt records an attempt whose transaction was rolled back, unless another
// caller has claimed the key since. Only MaxAttempts and the displayed attempt depend
// on it: if it fails, the next attempt gets the same number.
func (a *Atomic) recordAttempt(ctx context.Context, t *storeTx, why error) error {
	if t.claimed == nil {
		return nil
	}
	p := *t.claimed
	p.State, p.Error = store.Released, driver.ErrorText(why)
	return a.claimAgain(ctx, t, p)
}

// parkKey parks the key of a transaction that its handler may have committed. If another
// call has claimed the key since, it returns errClaimedSince.
func (a *Atomic) parkKey(ctx context.Context, t *storeTx) error {
	if t.claimed == nil {
		return nil
	}
	p := *t.claimed
	p.State, p.Policy, p.Error = store.Unknown, store.Park, handlertx.ErrEnded.Error()
	return a.claimAgain(ctx, t, p)
}

// claimAgain makes the claim of a transaction again, with the state and error of p. If p is
// parked and the handler has committed the claim, claimAgain replaces the claim. It does not
// replace a record that has an outcome.
func (a *Atomic) claimAgain(ctx context.Context, t *storeTx, p store.Proposal) (err error) {
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), a.cleanupTimeout)
	defer cancel()
	p.Lease, p.Owner = 0, newOwnerToken()
	var f store.Found
	if t.replaced != nil {
		f, err = a.outside.Swap(ctx, *t.replaced, p)
	} else {
		f, err = a.outside.Claim(ctx, p)
	}
	if err == nil && !f.Won && p.State == store.Unknown && f.Record.Owner == t.claimed.Owner && !f.Record.State.Terminal() {
		f, err = a.outside.Swap(ctx, f.Record.Seen(), p)
	}
	if err == nil && !f.Won && p.State == store.Unknown && f.Record.State != store.Unknown && f.Record.Owner != t.claimed.Owner {
		err = errClaimedSince
	}
	return err
}

// errClaimedSince: the key of a transaction that its handler has committed is not parked.
var errClaimedSince = errors.New("another call has claimed the key since")

var errPanicked = errors.New("panic, or runtime.Goexit")
