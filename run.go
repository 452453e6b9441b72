package semel

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/semel-go/semel/store"
)

// Run runs fn once for a call, or returns what an earlier run left: what Do,
// Once and the doors are made of. See Do for the errors.
func (g *Guard) Run(ctx context.Context, call Call, fn Handler) (Result, error) {
	if err := g.check(&call); err != nil {
		return Result{}, err
	}
	v := g.newVisit(call)
	var a admission
	err := v.admit(ctx, &a)
	switch {
	case err != nil && g.opt.UnprotectedOnOutage && !v.answered && errors.Is(err, ErrUnavailable) && !errors.Is(err, store.ErrCorrupt) && ctx.Err() == nil:
		return g.unprotected(ctx, call, fn)
	case err != nil:
		return a.result, err
	case a.claimed:
		return g.execute(ctx, &a, fn, nil)
	case g.opt.Rerun:
		return g.rerun(ctx, call, fn)
	}
	return a.result, nil
}

// rerunSuffix ends the operation of a sibling key. No step can have this name,
// for a step's is not empty.
const rerunSuffix = "##rerun"

// rerun executes a completed call again under the lease of a sibling key, so
// that the kept outcome stays, and no two run at once.
func (g *Guard) rerun(ctx context.Context, call Call, fn Handler) (Result, error) {
	// The payload and the token were compared with the call's own record.
	call.key.Operation += rerunSuffix
	call.payload, call.token = NoPayload(), time.Time{}
	v := g.newVisit(call)
	v.as.MaxAttempts = 0 // crashed reads must not fail the sibling for good
	var a admission
	err := v.admit(ctx, &a)
	if err != nil {
		return a.result, err
	}
	if !a.claimed { // nothing completes a sibling key
		return Result{}, &Error{Reason: ErrUnavailable, Operation: call.Operation(), Cause: store.ErrCorrupt}
	}
	return g.execute(ctx, &a, fn, func(x *Execution, _ Outcome, err error) (store.Settlement, Kind, error) {
		s := store.Settlement{State: store.Released, Attempt: x.attempt - 1, Keep: g.opt.Lease}
		if err != nil {
			s.Error = errText(err)
			return s, EventReleased, passOn(err)
		}
		return s, EventExecuted, nil
	})
}

// ending says how a run that ended with o or err is to be settled, what event
// that is, and which error its caller gets.
type ending func(x *Execution, o Outcome, err error) (store.Settlement, Kind, error)

// execute runs the handler under a claim, and settles it. A nil end is the
// Guard's own: what the handler returns is kept.
func (g *Guard) execute(ctx context.Context, a *admission, fn Handler, end ending) (Result, error) {
	x := g.newExecution(&a.found.Record, a.granted)
	x.leased, x.run = true, &x.ctx
	if end == nil {
		end, x.keeps = g.end, true
	}
	hctx := x.within(ctx)
	defer x.ctx.end(nil)
	g.keep.add(&x.held, a.sent)
	defer g.drop(x)

	o, err := g.call(ctx, hctx, x, fn, end)
	if x.Completed() {
		g.ended(ctx, x, EventExecuted, err)
		return Result{Outcome: o, codecs: g.opt.Codecs}, err
	}
	s, kind, err := end(x, o, err)
	return g.conclude(ctx, x, o, s, kind, err)
}

var errPanicked = errors.New("the handler panicked or called runtime.Goexit")

// call runs the handler. If it panics or leaves by runtime.Goexit, the claim
// is settled as doubt, and the panic goes on.
func (g *Guard) call(ctx, hctx context.Context, x *Execution, fn Handler, end ending) (o Outcome, err error) {
	returned := false
	defer func() {
		switch {
		case returned:
			return
		case x.Completed():
			g.ended(ctx, x, EventExecuted, errPanicked)
			return
		}
		s, kind, err := end(x, Outcome{}, errPanicked)
		_, _ = g.conclude(ctx, x, Outcome{}, s, kind, err) // the panic is what the caller gets; the event tells the rest
	}()
	o, err = fn(hctx, x)
	returned = true
	return o, err
}

func (g *Guard) newExecution(r *store.Record, begun instant) *Execution {
	x := &Execution{}
	x.begin(g, r, begun)
	return x
}

// begin sets a new Execution up for the claim of r.
func (x *Execution) begin(g *Guard, r *store.Record, begun instant) {
	x.start(g, r.Policy, r.Lease(), r.Attempt, r.Fingerprint.Sum, begun)
}

func (x *Execution) start(g *Guard, policy Policy, l store.Lease, attempt int, fingerprint string, begun instant) {
	x.g, x.policy = g, policy
	x.lease, x.attempt, x.fingerprint, x.begun = l, attempt, fingerprint, begun
}

// drop ends the renewals of x and wakes those who wait for it in this Guard.
func (g *Guard) drop(x *Execution) {
	if x.leased {
		g.keep.remove(&x.held)
	}
	g.watch.wake(x.lease.Key)
}

// end is the table of what a handler returns and what becomes of the call.
func (g *Guard) end(x *Execution, o Outcome, err error) (store.Settlement, Kind, error) {
	if err == nil {
		return g.completion(o), EventExecuted, nil
	}
	s := store.Settlement{State: store.Released, Attempt: x.attempt, Error: errText(err), Keep: g.opt.Retention}
	if SaysNoEffect(err) {
		s.Attempt--
		return s, EventReleased, passOn(err)
	}
	if f, ok := errors.AsType[*Failure](err); ok && f != nil {
		f = f.clean()
		return g.failed(f), EventFailed, f
	}
	if x.policy == Park {
		s.State = store.Unknown
		return s, EventParked, &Error{Reason: ErrParked, Operation: Operation(x.lease.Key.Operation), Cause: err}
	}
	if g.opt.MaxAttempts > 0 && x.attempt >= g.opt.MaxAttempts {
		f := exhaustedFailure(x.attempt, errText(err))
		g.ended(x.ctx.Context, x, EventExhausted, err)
		return g.failed(f), EventFailed, errors.Join(f, err) // doors find their own error in it
	}
	if g.opt.Backoff != nil {
		s.Wait = min(max(0, g.opt.Backoff(x.attempt)), g.opt.Retention)
	}
	return s, EventReleased, err
}

// completion keeps an outcome, or a tombstone of one that is too large.
func (g *Guard) completion(o Outcome) store.Settlement {
	return store.Settlement{State: store.Completed, Attempt: 0, Outcome: g.fit(o), Keep: g.opt.Retention}
}

func (g *Guard) failed(f *Failure) store.Settlement {
	o, err := f.outcome()
	if err != nil || len(o.Body) > g.opt.MaxOutcome { // callers branch on the code: without the data rather than without both
		o, _ = (&Failure{Code: f.Code, Message: errText(f)}).outcome()
	}
	return store.Settlement{State: store.Failed, Outcome: g.fit(o), Error: errText(f), Keep: g.opt.Retention}
}

// fit drops what is too large to keep: the body first, then the headers too.
func (g *Guard) fit(o Outcome) Outcome {
	size := 0
	for _, h := range o.Header {
		size += len(h.Name) + len(h.Value)
	}
	if size > g.opt.MaxOutcome {
		o.Header, o.Body, o.Gone = nil, nil, true
	}
	if size+len(o.Body) > g.opt.MaxOutcome {
		o.Body, o.Gone = nil, true
	}
	return o
}

// conclude stores how a run ended, and says what its caller gets.
func (g *Guard) conclude(ctx context.Context, x *Execution, o Outcome, s store.Settlement, kind Kind, err error) (Result, error) {
	serr, reconciles := g.settle(ctx, x, s), kind == EventReconciled || kind == EventUndecided
	switch {
	case serr != nil && reconciles: // nothing is said of the call, whose end this is not
		if lost := errors.Is(serr, store.ErrLeaseLost); lost || kind == EventReconciled {
			reason, cause := ErrUnavailable, serr
			if lost {
				reason, cause = ErrChanged, textOf(err)
			}
			err = &Error{Reason: reason, Operation: Operation(x.lease.Key.Operation), Cause: cause}
		}
		kind = EventUndecided
	case errors.Is(serr, store.ErrLeaseLost):
		kind, err = EventLeaseLost, &Error{Reason: ErrLeaseLost, Operation: Operation(x.lease.Key.Operation), Cause: textOf(err)}
	case serr != nil && s.State.Terminal():
		kind, err = EventNotStored, &Error{Reason: ErrOutcomeNotStored, Operation: Operation(x.lease.Key.Operation), Cause: errors.Join(serr, err)}
	case serr != nil: // the lease lapses instead, which comes to the same
		kind = EventNotStored
	}
	g.ended(ctx, x, kind, err)
	if err != nil && !errors.Is(err, ErrOutcomeNotStored) {
		return Result{}, err
	}
	return Result{Outcome: o, codecs: g.opt.Codecs}, err
}

func (g *Guard) ended(ctx context.Context, x *Execution, kind Kind, err error) {
	if g.opt.Observe == nil {
		return
	}
	g.observe(ctx, Event{Kind: kind, Policy: x.policy, Attempt: x.attempt, Took: now().since(x.begun), Err: err}, x.lease.Key)
}

// unprotected runs the handler without a record: Options.UnprotectedOnOutage.
func (g *Guard) unprotected(ctx context.Context, call Call, fn Handler) (Result, error) {
	x := &Execution{g: g, policy: g.opt.OnDoubt, claim: claim{held: held{lease: store.Lease{Key: call.key}}, attempt: 1, begun: now()}}
	defer x.ctx.end(nil)
	o, err := fn(x.within(ctx), x)
	g.ended(ctx, x, EventUnprotected, err)
	if err != nil {
		return Result{}, fmt.Errorf("semel: ran without a record: %w", passOn(err))
	}
	return Result{Outcome: o, codecs: g.opt.Codecs}, nil
}
