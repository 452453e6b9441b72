package semel

import (
	"context"
	"errors"
	"fmt"

	"github.com/semel-go/semel/internal/handlererr"
	"github.com/semel-go/semel/internal/protocol"
	"github.com/semel-go/semel/store"
)

// runIn runs a call inside a transaction: see driver.RunIn.
func (g *Guard) runIn(ctx context.Context, tx store.Tx, call Call, fn Handler) (Result, error) {
	if err := checkHandler(&call, fn == nil); err != nil {
		return Result{}, err
	}
	if g != nil {
		tx = g.options.Encryption.Tx(tx)
	}
	if call.step != nil {
		if err := g.check(&call); err != nil {
			return Result{}, err
		}
		return g.runStep(ctx, tx, call, func(s *runningStep, handlerCtx context.Context) (Result, stepState, error) {
			return s.runIn(ctx, handlerCtx, fn)
		})
	}
	t := &txCall{}
	if err := t.init(g, call); err != nil {
		return Result{}, err
	}
	t.tx = tx
	runErr, err := nested(ctx, tx, func() error {
		x, err := t.claimInTx(ctx)
		if x == nil {
			return err
		}
		return t.run(ctx, x, fn)
	})
	switch {
	case err != nil && runErr == nil: // the outcome could not be written
		t.result, runErr = Result{}, t.unavailable(ctx, err)
	case err != nil: // the writes of the run could not be undone
		t.result, runErr = Result{}, t.unavailable(ctx, textOnly(err))
	}
	return t.finish(runErr)
}

// nestedError marks the error of f on its way through store.Tx.Nested. nested compares the
// pointer, because errors of handlers may not be comparable.
type nestedError struct{ error }

// nested runs f in a savepoint. runErr is the error of f; its writes are undone.
// err says that the savepoint could not be kept or undone.
func nested(ctx context.Context, tx store.Tx, f func() error) (runErr, err error) {
	var failed *nestedError
	err = tx.Nested(ctx, func() error {
		if err := f(); err != nil {
			failed = &nestedError{err}
			return failed
		}
		return nil
	})
	if failed == nil {
		return nil, err
	}
	if err == error(failed) { //nolint:errorlint // Nested must return the very error that it was given
		err = nil
	}
	return failed.error, err
}

// txCall is a call whose claim, run and settlement happen in one transaction.
type txCall struct {
	pendingCall
	tx     store.Tx
	owner  store.Owner // of a proposal that the store has already inserted; zero: none
	x      *Execution  // for package driver
	result Result
	kept   error // the *Failure for the caller; it is recorded, so the transaction commits
}

func (t *txCall) init(g *Guard, call Call) error {
	if err := g.check(&call); err != nil {
		return err
	}
	if g.options.Rerun || g.options.UnprotectedOnOutage {
		return invalid(call.Operation, errors.New("options: Rerun and UnprotectedOnOutage have no meaning in a transaction"))
	}
	if call.step != nil {
		return invalid(call.Operation, errors.New("call: is a step, which cannot be one of a batch; run it alone"))
	}
	*t = txCall{pendingCall: g.newPendingCall(call)}
	return nil
}

// execution is the run of a claim of r.
func (t *txCall) execution(r *store.Record) *Execution {
	x := t.guard.newExecution(r, now())
	x.journal.kind = stepsInTx
	return x
}

// finish returns what the caller gets: the result, or the error, or the kept failure.
func (t *txCall) finish(err error) (Result, error) {
	if err == nil {
		err = t.kept
	}
	return t.result, handlererr.HideNoEffect(err)
}

// withHolder gives a claim in a transaction its holder.
func (t *txCall) withHolder(ctx context.Context, p store.Proposal) store.Proposal {
	if f := t.guard.options.TxHolder; f != nil {
		p.Holder = f(ctx, p.Holder)
	}
	return p
}

func (t *txCall) firstClaimIn(ctx context.Context) store.Proposal {
	return t.withHolder(ctx, t.firstClaim())
}

// claimInTx claims the key. If the handler must not run, the Execution is nil, and
// the call has its result or error.
func (t *txCall) claimInTx(ctx context.Context) (*Execution, error) {
	p := t.firstClaimIn(ctx)
	if t.owner != (store.Owner{}) {
		p.Owner = t.owner
	}
	f, err := t.tx.Claim(ctx, p)
	if err != nil {
		return nil, t.unavailable(ctx, err)
	}
	if f.Won && t.isRedeemed() { // a redeemed call only looks; the claim is undone
		return nil, t.refuse(ctx, ErrExpired, 0, nil)
	}
	if f.Won {
		return t.execution(&f.Record), nil
	}
	r := &f.Record
	d := t.decide(r, f.Now)
	switch d.Action {
	case store.Execute, store.TakeOver:
		f, err = t.tx.Swap(ctx, r.Seen(), t.withHolder(ctx, t.nextClaim(r, d, store.Processing)))
		if errors.Is(err, store.ErrNotFound) && !t.isRedeemed() {
			f, err = t.tx.Claim(ctx, t.firstClaimIn(ctx)) // the record was swept after the look
		}
		if err != nil {
			return nil, t.unavailable(ctx, err)
		}
		if !f.Won {
			return nil, t.refuse(ctx, ErrInProgress, 0, nil)
		}
		x := t.execution(&f.Record)
		x.txJournal, _ = t.tx.(store.Journal) // a leased attempt may have recorded steps
		return x, nil
	case store.InProgress:
		t.running = runningFor(r, f.Now)
		return nil, t.refuse(ctx, ErrInProgress, d.Until.Sub(f.Now), nil)
	case store.DoPark, store.Parked:
		return nil, t.refuse(ctx, ErrParked, 0, lastError(r))
	case store.Exhausted:
		last := protocol.LastAttemptText(r)
		if d.Policy == Park {
			return nil, t.refuse(ctx, ErrParked, 0, errors.New(protocol.ExhaustedText(r.Attempt, last)))
		}
		t.kept = exhaustedFailure(r.Attempt, last)
		t.reportEnd(ctx, EventFailed, r, t.kept)
		return nil, nil
	}
	t.result, err = t.answer(ctx, r, d)
	if _, ok := errors.AsType[*Failure](err); ok {
		t.kept, err = err, nil
	}
	return nil, err
}

// run runs the handler in a savepoint. If the handler fails, its writes are
// undone and the record says so.
func (t *txCall) run(ctx context.Context, x *Execution, fn Handler) error {
	handlerCtx, cancel := x.handlerContext(ctx)
	defer cancel(nil)
	var o store.Outcome
	returned := false
	defer func() {
		if !returned {
			t.guard.observeEnd(ctx, x, EventReleased, errPanicked)
		}
	}()
	handlerErr, err := nested(ctx, t.tx, func() (err error) {
		o, err = fn(handlerCtx, x)
		return err
	})
	returned = true
	if err != nil { // never the handler's own error, because its writes may still be there
		return t.unavailable(ctx, textOnly(err))
	}
	return t.settle(ctx, x, o, handlerErr)
}

// settle records what the handler returned. If it returns an error, the writes of
// the call must be undone.
func (t *txCall) settle(ctx context.Context, x *Execution, o store.Outcome, err error) error {
	x.journal.close()
	err = handlerError(err)
	g := t.guard
	s, kind := g.completion(o), EventExecuted
	if err != nil {
		f, ok := errors.AsType[*Failure](err)
		if !ok || f == nil || handlererr.IsNoEffect(err) {
			g.observeEnd(ctx, x, EventReleased, err)
			return err
		}
		f = f.validUTF8()
		s, kind, t.kept = g.failed(f), EventFailed, f
	}
	s.Attempt = x.attempt
	settleErr := t.tx.Settle(ctx, x.lease, s)
	if errors.Is(settleErr, store.ErrTooLarge) {
		s.Outcome = tombstone(s.Outcome)
		settleErr = t.tx.Settle(ctx, x.lease, s)
	}
	if settleErr != nil {
		t.kept = nil
		return t.unavailable(ctx, fmt.Errorf("settle: %w", settleErr))
	}
	t.result = Result{Outcome: o, codecs: g.options.Codecs}
	g.observeEnd(ctx, x, kind, err)
	return nil
}

// runIn runs the step in a transaction, together with its record.
func (s *runningStep) runIn(ctx, handlerCtx context.Context, fn Handler) (res Result, use stepState, err error) {
	var kept error
	runErr, err := nested(ctx, s.tx, func() error {
		var o store.Outcome
		handlerErr, err := nested(ctx, s.tx, func() (err error) {
			o, err = fn(handlerCtx, s.x)
			return handlerError(err)
		})
		if err != nil {
			return s.unavailable(ctx, textOnly(err))
		}
		if handlerErr != nil {
			s.journal.mu.Lock()
			s.journal.undo(s.x)
			s.journal.mu.Unlock()
		}
		step, kind, err := s.outcome(o, handlerErr)
		if step == nil {
			s.guard.observeEnd(ctx, s.x, kind, err)
			return err
		}
		if step.Failed {
			kept = err
		} else {
			res = Result{Outcome: o, codecs: s.guard.options.Codecs}
		}
		if err := s.journal.recordIn(ctx, s.tx, step); err != nil {
			use = stateAfterRefusal(err)
			return s.unavailable(ctx, fmt.Errorf("record the step: %w", err))
		}
		s.recorded = step
		s.guard.observeEnd(ctx, s.x, kind, err)
		return nil
	})
	switch {
	case runErr != nil && err == nil:
		return Result{}, use, runErr // its writes are undone
	case err != nil:
		return Result{}, stepInDoubt, s.unavailable(ctx, textOnly(err))
	}
	return res, stepUncommitted, kept
}

// stateAfterRefusal is the state of a step that its transaction could not record.
func stateAfterRefusal(err error) stepState {
	switch {
	case errors.Is(err, store.ErrLeaseLost):
		return stepLost
	case errors.Is(err, store.ErrChanged): // another transaction has recorded it
		return stepInDoubt
	}
	return stepFree
}
