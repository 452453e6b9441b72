package semel

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/semel-go/semel/internal/handlererr"
	"github.com/semel-go/semel/internal/leaseend"
	"github.com/semel-go/semel/internal/protocol"
	"github.com/semel-go/semel/store"
	"github.com/semel-go/semel/store/encrypted"
)

// Run runs fn once for a call, or returns the outcome of an earlier run. Do and
// Once call it. See Do for the errors.
func (g *Guard) Run(ctx context.Context, call Call, fn Handler) (Result, error) {
	if err := g.check(&call); err != nil {
		return Result{}, err
	}
	if err := checkHandler(&call, fn == nil); err != nil {
		return Result{}, err
	}
	if call.step != nil {
		return g.runStep(ctx, nil, call, func(s *runningStep, handlerCtx context.Context) (Result, stepState, error) {
			return s.run(ctx, handlerCtx, fn)
		})
	}
	c := g.newPendingCall(call)
	c.mayRunUnprotected = g.options.UnprotectedOnOutage
	var a admission
	err := c.admit(ctx, &a)
	switch {
	case err != nil && c.runsUnprotected(err):
		return g.runUnprotected(ctx, &c, fn)
	case err != nil:
		return a.result, err
	case a.claimed:
		return g.execute(ctx, &a, fn, nil)
	case g.options.Rerun:
		return g.rerun(ctx, call, fn)
	}
	return a.result, nil
}

// rerun executes a completed call again under the lease of a second key, so that
// the kept outcome stays and two reruns never run at the same time. If the kept outcome
// expires meanwhile, the next call of the first key runs beside the rerun.
func (g *Guard) rerun(ctx context.Context, call Call, fn Handler) (Result, error) {
	// The payload and the token were compared with the call's own record.
	call.Operation += protocol.RerunSuffix
	call.Payload, call.reserved, call.rerun = NoPayload(), time.Time{}, true
	c := g.newPendingCall(call)
	c.storeCall.MaxAttempts = 0 // crashed reads must not fail the second key for good
	var a admission
	err := c.admit(ctx, &a)
	if err != nil {
		return a.result, err
	}
	if !a.claimed { // nothing completes a second key
		return Result{}, &Error{Reason: store.ErrCorrupt, Operation: call.Operation}
	}
	return g.execute(ctx, &a, fn, func(x *Execution, _ store.Outcome, err error) (store.Settlement, string, error) {
		s := store.Settlement{State: store.Released, Attempt: x.attempt - 1, Keep: g.options.Lease}
		if err != nil {
			s.Error = errorText(err)
			return s, EventReleased, handlererr.HideNoEffect(err)
		}
		return s, EventExecuted, nil
	})
}

// settler says how to settle a run that ended with o or err, the kind of its
// event, and the error for the caller.
type settler func(x *Execution, o store.Outcome, err error) (store.Settlement, string, error)

// execute runs the handler under a claim, and settles it. If settle is nil, the
// handler's outcome is kept.
func (g *Guard) execute(ctx context.Context, a *admission, fn Handler, settle settler) (Result, error) {
	x := g.newExecution(&a.found.Record, a.granted)
	x.reconciling, x.claimed = a.reconciling, a.found.Now
	switch {
	case settle == nil:
		settle, x.mayComplete = g.settlementOf, true
	case x.reconciling:
		x.journal.kind = stepsReadOnly
	case !protocol.IsSaga(x.key): // a rerun runs its steps again, too
		x.journal.kind = stepsUnrecorded
	}
	handlerCtx, cancel := x.handlerContext(ctx)
	defer cancel(nil)
	if end, ok := leaseend.From(ctx); ok {
		var stop context.CancelFunc
		handlerCtx, stop = context.WithDeadlineCause(handlerCtx, end, ErrLeaseLost)
		defer stop()
	}
	x.renewal = &renewal{lease: x.lease, cancel: cancel, end: leaseEnd(ctx)}
	g.heartbeat.add(x.renewal, a.sent)
	defer g.release(x)

	o, err := g.call(ctx, handlerCtx, x, fn, settle)
	if x.isCompleted() {
		g.observeEnd(ctx, x, EventExecuted, err)
		return Result{Outcome: o, codecs: g.options.Codecs}, handlererr.HideNoEffect(err)
	}
	s, kind, err := settle(x, o, err)
	return g.conclude(ctx, x, o, s, kind, err)
}

var errPanicked = errors.New("the handler panicked or called runtime.Goexit")

// call runs the handler. If the handler panics or calls runtime.Goexit, the call
// is settled as in doubt, and the panic goes on.
func (g *Guard) call(ctx, handlerCtx context.Context, x *Execution, fn Handler, settle settler) (o store.Outcome, err error) {
	returned := false
	defer func() {
		switch {
		case returned:
			return
		case x.isCompleted():
			g.observeEnd(ctx, x, EventExecuted, errPanicked)
			return
		}
		s, kind, err := settle(x, store.Outcome{}, errPanicked)
		_, _ = g.conclude(ctx, x, store.Outcome{}, s, kind, err) // the caller gets the panic; the event has the error
	}()
	defer x.journal.close()
	o, err = fn(handlerCtx, x)
	err, returned = handlerError(err), true
	return o, err
}

// release ends the renewals of a run and wakes the calls of this Guard that wait
// for it.
func (g *Guard) release(x *Execution) {
	if x.renewal != nil {
		g.heartbeat.remove(x.renewal)
	}
	g.waiters.wake(x.lease.Key)
}

// settlementOf decides by the handler's error how the call is settled.
func (g *Guard) settlementOf(x *Execution, o store.Outcome, err error) (store.Settlement, string, error) {
	if err == nil {
		return g.completion(o), EventExecuted, nil
	}
	s := store.Settlement{State: store.Released, Attempt: x.attempt, Error: errorText(err), Keep: g.options.Retention}
	if handlererr.IsNoEffect(err) {
		s.Attempt--
		if x.beginsLife && x.fingerprint != "" && !x.stepped.Load() {
			s.Keep = 0 // nothing has happened under the key, so it is free for another payload
		}
		return s, EventReleased, handlererr.HideNoEffect(err)
	}
	if f, ok := errors.AsType[*Failure](err); ok && f != nil {
		f = f.validUTF8()
		return g.failed(f), EventFailed, f
	}
	if x.policy == Park {
		s.State = store.Unknown
		return s, EventParked, x.failure(ErrParked, err)
	}
	if g.options.MaxAttempts > 0 && x.attempt >= g.options.MaxAttempts {
		f := exhaustedFailure(x.attempt, errorText(err))
		return g.failed(f), EventFailed, errors.Join(f, err) // the caller finds both errors in it
	}
	if g.options.Backoff != nil {
		s.Wait = min(g.options.Backoff(x.attempt), g.options.Retention)
		s.Keep += s.Wait // attempts and steps must not be forgotten before the next attempt
	}
	return s, EventReleased, err
}

// completion keeps an outcome, or a tombstone of one that is too large.
func (g *Guard) completion(o store.Outcome) store.Settlement {
	return store.Settlement{State: store.Completed, Attempt: 0, Outcome: g.limit(o), Keep: g.options.Retention}
}

func (g *Guard) failed(f *Failure) store.Settlement {
	o, err := f.outcome()
	if err != nil || len(o.Body) > g.options.MaxOutcome { // callers branch on the code, so keep it and drop the data
		o, _ = (&Failure{Code: f.Code, Message: errorText(f)}).outcome()
	}
	return store.Settlement{State: store.Failed, Outcome: g.limit(o), Error: errorText(f), Keep: g.options.Retention}
}

// limit drops what exceeds MaxOutcome: first the body, then also the headers.
func (g *Guard) limit(o store.Outcome) store.Outcome {
	size := 0
	for _, h := range o.Header {
		size += len(h.Name) + len(h.Value)
	}
	if size > g.options.MaxOutcome {
		o.Header, o.Body, o.Gone = nil, nil, true
	}
	if size+len(o.Body) > g.options.MaxOutcome {
		o.Body, o.Gone = nil, true
	}
	return o
}

// conclude stores how a run ended, and returns the result for its caller.
func (g *Guard) conclude(ctx context.Context, x *Execution, o store.Outcome, s store.Settlement, kind string, err error) (Result, error) {
	settleErr := g.settle(ctx, x, s)
	lost := errors.Is(settleErr, store.ErrLeaseLost)
	switch {
	case settleErr != nil && x.reconciling:
		if lost {
			err = x.failure(store.ErrChanged, textOnly(err))
		} else if kind == EventReconciled {
			err = x.failure(ErrUnavailable, settleErr)
		}
		kind = EventParked
	case lost:
		kind, err = EventNotStored, x.failure(ErrLeaseLost, textOnly(err))
	case settleErr != nil && s.State.Terminal():
		kind, err = EventNotStored, x.failure(ErrOutcomeNotStored, errors.Join(settleErr, err))
	case settleErr != nil: // the lease expires instead, with the same result
		kind = EventNotStored
	}
	g.observeEnd(ctx, x, kind, err)
	if err != nil && !errors.Is(err, ErrOutcomeNotStored) {
		return Result{}, err
	}
	return Result{Outcome: o, codecs: g.options.Codecs}, err
}

// noteAnswer sets answered if the store has answered about this key, because such a call must
// not run unprotected (Options.UnprotectedOnOutage). These are answers: the record, also with
// an error because its outcome cannot be decrypted or confirmed now; an error that concerns
// this call only; store.ErrBusy; and encrypted.ErrUnknownKey. answered stays set if a repeat of
// the request gets no answer.
func (c *pendingCall) noteAnswer(f store.Found, err error) (store.Found, error) {
	c.answered = c.answered || f.Record.Key == c.key || err != nil && (store.Affects(err) == store.ExtentCall || errors.Is(err, store.ErrBusy) || errors.Is(err, encrypted.ErrUnknownKey))
	return f, err
}

// noteClaim is noteAnswer for a claim by owner. Two records do not count, because nobody else has
// the key: one that has expired, and the claim itself, which the store holds although it returned
// an error, or did not answer.
func (c *pendingCall) noteClaim(owner store.Owner, f store.Found, err error) {
	if r := &f.Record; r.Expired(f.Now) || r.Owner == owner && r.State == store.Processing {
		f = store.Found{}
	}
	_, _ = c.noteAnswer(f, err)
}

// lookTime is how long askForRecord takes at most: a store that works answers at once.
const lookTime = time.Second

// askForRecord asks for the record of a call whose claim by owner failed, because a store that
// takes no changes may answer reads.
func (c *pendingCall) askForRecord(ctx context.Context, owner store.Owner) {
	limited, cancel := context.WithTimeout(ctx, lookTime)
	defer cancel()
	if f, err := c.guard.store.Get(limited, c.key); !errors.Is(err, store.ErrNotFound) {
		c.noteClaim(owner, f, err)
	}
}

// runsUnprotected reports whether a call that is refused with err runs without a record
// instead.
func (c *pendingCall) runsUnprotected(err error) bool {
	return c.mayRunUnprotected && !c.answered && errors.Is(err, ErrUnavailable)
}

// runUnprotected runs the handler without a record: Options.UnprotectedOnOutage.
func (g *Guard) runUnprotected(ctx context.Context, c *pendingCall, fn Handler) (Result, error) {
	x := g.newExecution(&store.Record{Key: c.key, Policy: g.options.OnDoubt, Attempt: 1}, now())
	x.journal.kind = stepsUnrecorded
	defer x.journal.close()
	handlerCtx, cancel := x.handlerContext(ctx)
	defer cancel(nil)
	returned := false
	defer func() {
		if !returned {
			g.observeEnd(ctx, x, EventUnprotected, errPanicked)
		}
	}()
	o, err := fn(handlerCtx, x)
	err, returned = handlerError(err), true
	g.observeEnd(ctx, x, EventUnprotected, err)
	if err != nil {
		return Result{}, fmt.Errorf("semel: ran without a record: %w", handlererr.HideNoEffect(err))
	}
	return Result{Outcome: o, codecs: g.options.Codecs}, nil
}

func exhaustedFailure(attempts int, last string) *Failure {
	return &Failure{Code: CodeAttemptsExhausted, Message: protocol.ExhaustedText(attempts, last)}
}
