package semel

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/semel-go/semel/internal/protocol"
	"github.com/semel-go/semel/store"
)

// Verdict says what became of a parked call. The zero Verdict means "not known".
type Verdict struct {
	kind    verdictKind
	value   any
	failure *Failure
}

type verdictKind uint8

const (
	undecided verdictKind = iota
	happened
	didNotHappen
	failedForGood
)

// Happened completes the call with the result v. A store.Outcome is kept as it is;
// any other value is encoded by the Guard's first codec.
func Happened(v any) Verdict { return Verdict{kind: happened, value: v} }

// DidNotHappen lets the next call run the handler.
func DidNotHappen() Verdict { return Verdict{kind: didNotHappen} }

// FailedForGood fails the call for good. Every duplicate gets f.
func FailedForGood(f *Failure) Verdict { return Verdict{kind: failedForGood, failure: f} }

// settlement says how a verdict changes a record.
func (g *Guard) settlement(v Verdict, attempt int) (store.Settlement, error) {
	s := store.Settlement{Attempt: attempt, Keep: g.options.Retention}
	switch v.kind {
	case happened:
		o, ok := v.value.(store.Outcome)
		if !ok {
			var err error
			if o, err = encode(g.options.Codecs[0], v.value); err != nil {
				return s, err
			}
		}
		s.State, s.Outcome = store.Completed, g.limit(o)
	case didNotHappen:
		s.State, s.Error = store.Released, protocol.ReconciledNoEffect
	case failedForGood:
		f := v.failure
		if f == nil {
			f = &Failure{Code: "failed", Message: "failed for good"}
		}
		failed := g.failed(f)
		s.State, s.Outcome, s.Error = failed.State, failed.Outcome, failed.Error
	default:
		s.State, s.Error = store.Unknown, "reconciled: still not known"
	}
	return s, nil
}

var errUndecided = errors.New("the reconciler does not know")

// reconcile asks Options.Reconcile about the parked call of r, under a lease of
// its own. Nil: the record has the answer now. store.ErrChanged: another process
// was first.
func (g *Guard) reconcile(ctx context.Context, r *store.Record) error {
	p := g.change(r, store.Processing, r.LastError)
	p.Policy, p.Holder = store.Park, g.options.Holder+protocol.ReconcilerSuffix
	// If the reconciler cannot start, the record returns to Unknown and never to
	// Released, which would mean that the effect did not happen.
	c := pendingCall{guard: g, key: r.Key, undoState: store.Unknown}
	sent := now()
	f, err := c.swap(ctx, r.Seen(), p)
	switch {
	case errors.Is(err, store.ErrNotFound) || err == nil && !f.Won:
		return store.ErrChanged
	case err != nil:
		return &Error{Reason: ErrUnavailable, Operation: r.Key.Operation, Cause: err}
	}
	a := admission{found: f, sent: sent, reconciling: true}
	if err := c.grant(ctx, &a); err != nil {
		return &Error{Reason: ErrUnavailable, Operation: r.Key.Operation, Cause: err}
	}
	var verdict Verdict
	_, err = g.execute(ctx, &a, func(ctx context.Context, x *Execution) (store.Outcome, error) {
		var err error
		verdict, err = g.options.Reconcile(ctx, x)
		return store.Outcome{}, err
	}, func(x *Execution, _ store.Outcome, err error) (store.Settlement, string, error) {
		return g.settleReconciled(x, r, verdict, err)
	})
	return err
}

// settleReconciled says how a reconciler's run ends.
func (g *Guard) settleReconciled(x *Execution, r *store.Record, v Verdict, err error) (store.Settlement, string, error) {
	if err == nil {
		var s store.Settlement
		if s, err = g.settlement(v, x.attempt); err == nil && s.State != store.Unknown {
			if s.State == store.Released && g.options.MaxAttempts > 0 && x.attempt >= g.options.MaxAttempts {
				s = g.failed(exhaustedFailure(x.attempt, s.Error)) // nothing happened, and no attempt is left
			}
			return s, EventReconciled, nil
		}
	}
	if err == nil {
		err = errUndecided
	}
	return store.Settlement{State: store.Unknown, Attempt: x.attempt, Error: protocol.UndecidedText(r, errorText(err))}, EventParked, err
}

// Reconcile asks Options.Reconcile about the parked calls of an operation, one
// after the other and at most limit, and returns how many are decided now. Call it
// from a timer. An empty operation means all. The store must be a store.Lister.
//
// Calls that stay unknown are no error. err joins the errors of Options.Reconcile,
// an *Error for each call that the store failed, and the cause of ctx if ctx ends
// first. If the store does not list all parked calls within 30 s (or Options.StoreTimeout,
// if that is longer), for example because a part of it is down, Reconcile asks about those
// that it lists, and err has the store's error too.
func (g *Guard) Reconcile(ctx context.Context, operation string, limit int) (settled int, err error) {
	switch {
	case g == nil || g.store == nil:
		return 0, invalid(operation, errZeroGuard)
	case g.options.Reconcile == nil:
		return 0, invalid(operation, errors.New("Reconcile: Options.Reconcile is not set"))
	case g.lister == nil:
		return 0, invalid(operation, errors.New("store: cannot be searched; it does not implement store.Lister"))
	case limit <= 0:
		return 0, invalid(operation, fmt.Errorf("limit: is %d; at least 1 is needed", limit))
	}
	parked, errs := g.listParked(ctx, operation, limit)
	for i := range parked {
		if ctx.Err() != nil {
			return settled, errors.Join(append(errs, context.Cause(ctx))...)
		}
		switch err := g.reconcile(ctx, &parked[i]); {
		case err == nil:
			settled++
		case ctx.Err() != nil:
			return settled, errors.Join(append(errs, context.Cause(ctx))...)
		case !errors.Is(err, store.ErrChanged) && !errors.Is(err, errUndecided):
			errs = append(errs, err)
		}
	}
	return settled, errors.Join(errs...)
}

// listTimeout is how long the list of parked calls may take, if StoreTimeout is not longer.
// It reads many records.
const listTimeout = 30 * time.Second

// listParked returns the parked calls that were asked about longest ago, at most limit, and
// why there may be more. It reads the whole list, because the caller changes records.
func (g *Guard) listParked(ctx context.Context, operation string, limit int) (parked []store.Record, errs []error) {
	limited, cancel := context.WithTimeout(ctx, max(listTimeout, g.options.StoreTimeout))
	defer cancel()
	for f, err := range g.lister.List(limited, store.Filter{Operation: operation, States: []store.State{store.Unknown}}) {
		if errors.Is(err, store.ErrCorrupt) { // the list goes on after it; one error stands for all
			if errs == nil {
				errs = append(errs, &Error{Reason: store.ErrCorrupt, Operation: operation, Cause: err})
			}
			continue
		}
		if err != nil {
			if limited.Err() != nil && ctx.Err() == nil {
				err = fmt.Errorf("the list of parked calls has not ended within %v: %w", max(listTimeout, g.options.StoreTimeout), err)
			}
			return parked, append(errs, &Error{Reason: ErrUnavailable, Operation: operation, Cause: err})
		}
		if protocol.IsSaga(f.Record.Key) { // only an operator decides about a saga
			continue
		}
		// Undecidable calls must not crowd out the rest.
		i, _ := slices.BinarySearchFunc(parked, f.Record.Updated, func(r store.Record, t time.Time) int { return r.Updated.Compare(t) })
		if i < limit {
			parked = slices.Insert(parked, i, f.Record)
			parked = parked[:min(len(parked), limit)]
		}
	}
	return parked, errs
}

// Resolve applies an operator's verdict to a parked call. seen is the record that
// the operator has judged. If the record has changed since, or is not parked, the
// error is store.ErrChanged. A saga is refused with ErrInvalid, because a verdict would not
// undo its steps: saga.Intervene decides about it.
func (g *Guard) Resolve(ctx context.Context, seen store.Record, v Verdict) error {
	op := seen.Key.Operation
	if g == nil || g.store == nil {
		return invalid(op, errZeroGuard)
	}
	if protocol.IsSaga(seen.Key) {
		return invalid(op, errors.New("seen: is the record of a saga, and a verdict would not undo its steps; use saga.Intervene"))
	}
	if v.kind == undecided {
		return invalid(op, errors.New("verdict: is the zero Verdict; use Happened, DidNotHappen or FailedForGood"))
	}
	if seen.State != store.Unknown {
		return &Error{Reason: store.ErrChanged, Operation: op, Cause: fmt.Errorf("the record is %v; only a parked (unknown) one can be resolved", seen.State)}
	}
	s, err := g.settlement(v, seen.Attempt)
	if err != nil {
		return invalid(op, err)
	}
	p := g.change(&seen, s.State, s.Error)
	p.Outcome = s.Outcome
	if p.State == store.Released {
		p.Error = protocol.ResolvedNoEffect
		p.Attempt = 0 // the operator's decision counts for more than the limit of attempts
	}
	return g.applyDecision(ctx, &seen, p, Event{Kind: EventReconciled})
}

// applyDecision changes the record that an operator has judged.
func (g *Guard) applyDecision(ctx context.Context, seen *store.Record, p store.Proposal, e Event) error {
	f, err := g.ask(ctx, func(ctx context.Context) (store.Found, error) {
		f, err := g.store.Swap(ctx, seen.Seen(), p)
		if errors.Is(err, store.ErrTooLarge) {
			p.Outcome = tombstone(p.Outcome)
			f, err = g.store.Swap(ctx, seen.Seen(), p)
		}
		return f, err
	})
	switch {
	case errors.Is(err, store.ErrNotFound) || err == nil && !f.Won:
		return &Error{Reason: store.ErrChanged, Operation: seen.Key.Operation}
	case err != nil:
		return &Error{Reason: ErrUnavailable, Operation: seen.Key.Operation, Cause: err}
	}
	e.Policy, e.Attempt = seen.Policy, seen.Attempt
	g.observe(ctx, e, seen.Key)
	g.waiters.wake(seen.Key)
	return nil
}

// Reopen lets the next call of a failed key run the handler again, with all its
// attempts, for example after an outage of another system has used them up. seen
// is the failed record that the operator has judged. why says who reopens it and
// for what reason; the record keeps it as LastError until the next attempt ends.
//
// If the record has changed since, or has not failed, the error is store.ErrChanged.
// ErrInvalid refuses a call with recorded steps, which would not run again although its
// handler may have undone them, and names them. If the attempts were used up
// (CodeAttemptsExhausted), it is reopened, and goes on after its steps. A saga is always
// refused. Duplicates that have got the failure already are not told.
func (g *Guard) Reopen(ctx context.Context, seen store.Record, why string) error {
	op := seen.Key.Operation
	switch {
	case g == nil || g.store == nil:
		return invalid(op, errZeroGuard)
	case protocol.IsSaga(seen.Key):
		return invalid(op, errors.New("seen: is the record of a saga, whose steps are undone, so that it would fail again; start one with another id"))
	case strings.TrimSpace(why) == "":
		return invalid(op, errors.New("why: is empty; say who reopens the key and for what reason"))
	case seen.State != store.Failed:
		return &Error{Reason: store.ErrChanged, Operation: op, Cause: fmt.Errorf("the record is %v; only a failed one can be reopened", seen.State)}
	}
	if err := g.checkSteps(ctx, &seen); err != nil {
		return err
	}
	cause := errors.New(protocol.Reopened + why)
	p := g.change(&seen, store.Released, errorText(cause))
	p.Attempt = 0
	return g.applyDecision(ctx, &seen, p, Event{Kind: EventReopened, Err: cause})
}

// checkSteps refuses to reopen a call if work that is undone would not be done again.
func (g *Guard) checkSteps(ctx context.Context, seen *store.Record) error {
	if g.journal == nil {
		return nil
	}
	var steps []store.Step
	_, err := g.ask(ctx, func(ctx context.Context) (f store.Found, err error) {
		steps, err = g.journal.Steps(ctx, seen.Lease())
		return f, err
	})
	if err == nil && len(steps) > 0 {
		err = checkDecrypted(&seen.Outcome) // its code counts
	}
	switch why := protocol.ReopenRefusal(seen, steps); {
	case errors.Is(err, store.ErrLeaseLost):
		return &Error{Reason: store.ErrChanged, Operation: seen.Key.Operation}
	case errors.Is(err, store.ErrCorrupt):
		return &Error{Reason: store.ErrCorrupt, Operation: seen.Key.Operation, Cause: err}
	case err != nil:
		return &Error{Reason: ErrUnavailable, Operation: seen.Key.Operation, Cause: err}
	case why != "":
		return invalid(seen.Key.Operation, errors.New("the call "+why))
	}
	return nil
}
