package semel

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/semel-go/semel/store"
)

// ReconcileFunc answers "did it happen?" for a parked call. It runs under a
// lease of its own, so that no two ask at once; x.Derive gives the keys that
// the handler's did. DidNotHappen must be true for good: also if a frozen
// handler wakes up later. When in doubt return an error, or the zero Verdict:
// the call stays parked.
type ReconcileFunc func(ctx context.Context, x *Execution) (Verdict, error)

// Verdict is what became of a parked call. The zero Verdict is "not known".
type Verdict struct {
	kind    verdict
	value   any
	failure *Failure
}

type verdict uint8

const (
	undecided verdict = iota
	happened
	didNotHappen
	failedForGood
)

// Happened completes the call with v: an Outcome as it is, anything else
// through the Guard's first codec.
func Happened(v any) Verdict { return Verdict{kind: happened, value: v} }

// DidNotHappen lets the next call execute.
func DidNotHappen() Verdict { return Verdict{kind: didNotHappen} }

// FailedForGood fails the call for good, with f for every duplicate.
func FailedForGood(f *Failure) Verdict { return Verdict{kind: failedForGood, failure: f} }

// settlement is what a verdict makes of a record.
func (g *Guard) settlement(v Verdict, attempt int) (store.Settlement, error) {
	s := store.Settlement{Attempt: attempt, Keep: g.opt.Retention}
	switch v.kind {
	case happened:
		o, ok := v.value.(Outcome)
		if !ok {
			body, err := g.opt.Codecs[0].Marshal(v.value)
			if err != nil {
				return s, fmt.Errorf("codec %q: %w", g.opt.Codecs[0].Name(), err)
			}
			o = Outcome{Body: body, Codec: g.opt.Codecs[0].Name()}
		}
		s.State, s.Outcome = store.Completed, g.fit(o)
	case didNotHappen:
		s.State, s.Error = store.Released, "reconciled: it did not happen"
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

// reconcile asks what became of the parked call of r, under a lease of its
// own. Nil: the record now says it. ErrChanged: somebody else was first.
func (g *Guard) reconcile(ctx context.Context, r *store.Record) error {
	p := g.change(r, store.Processing, r.LastError)
	p.Policy, p.Lease, p.Holder = store.Park, g.opt.Lease, g.opt.Holder+asksFor
	// A claim to reconcile that comes to nothing goes back to Unknown, never
	// to Released: that would be a "no" which nobody gave.
	v := visit{g: g, call: Call{key: r.Key}, undo: store.Unknown}
	sent := now()
	f, err := v.swap(ctx, r.Seen(), p)
	switch {
	case errors.Is(err, store.ErrNotFound) || err == nil && !f.Won:
		return ErrChanged
	case err != nil:
		return &Error{Reason: ErrUnavailable, Operation: v.call.Operation(), Cause: err}
	}
	a := admission{found: f, sent: sent}
	if err := v.granted(ctx, &a); err != nil {
		return &Error{Reason: ErrUnavailable, Operation: v.call.Operation(), Cause: err}
	}
	var verdict Verdict
	_, err = g.execute(ctx, &a, func(ctx context.Context, x *Execution) (Outcome, error) {
		var err error
		verdict, err = g.opt.Reconcile(ctx, x)
		return Outcome{}, err
	}, func(x *Execution, _ Outcome, err error) (store.Settlement, Kind, error) {
		return g.reconciled(x, r, verdict, err)
	})
	return err
}

// asksFor ends the name of a holder that is a reconciler.
const asksFor = " reconciling"

// whoAsked comes before what the last reconciler left.
const whoAsked = "; the reconciler: "

// undecidedText keeps what made the call of r unknown, and what came of asking
// last.
func undecidedText(r *store.Record, why string) string {
	doubt, _, _ := strings.Cut(r.LastError, whoAsked)
	return doubt + whoAsked + why
}

// reconciled is how a reconciler's run ends.
func (g *Guard) reconciled(x *Execution, r *store.Record, v Verdict, err error) (store.Settlement, Kind, error) {
	if err == nil {
		var s store.Settlement
		if s, err = g.settlement(v, x.attempt); err == nil && s.State != store.Unknown {
			if s.State == store.Released && g.opt.MaxAttempts > 0 && x.attempt >= g.opt.MaxAttempts {
				s = g.failed(exhaustedFailure(x.attempt, s.Error)) // nothing happened, and nothing will
			}
			return s, EventReconciled, nil
		}
	}
	if err == nil {
		err = errUndecided
	}
	return store.Settlement{State: store.Unknown, Attempt: x.attempt, Error: undecidedText(r, errText(err))}, EventUndecided, err
}

// Reconcile asks Options.Reconcile about the parked calls of an operation, up
// to limit, one after the other, and returns how many are settled now: for a
// timer. Empty operation: of all. The store must be a store.Lister. Calls that
// stay unknown are no error. What Options.Reconcile said of those whose asking
// failed, and an *Error for each that the store failed, are joined in err; so is
// the cause of ctx, if that ends first.
func (g *Guard) Reconcile(ctx context.Context, op Operation, limit int) (settled int, err error) {
	switch {
	case g == nil || g.st == nil:
		return 0, invalid(op, errors.New("guard: is the zero Guard; make one with New"))
	case g.opt.Reconcile == nil:
		return 0, invalid(op, errors.New("Reconcile: Options.Reconcile is not set"))
	case g.lister == nil:
		return 0, invalid(op, errors.New("store: cannot be searched; it is no store.Lister"))
	case limit <= 0:
		return 0, invalid(op, fmt.Errorf("limit: is %d; at least 1 is needed", limit))
	}
	var errs []error
	var parked []store.Record // read to the end first: the list must not see what is changed below
	for f, err := range g.lister.List(ctx, store.Filter{Operation: string(op), States: []store.State{store.Unknown}}) {
		if errors.Is(err, store.ErrCorrupt) { // the list goes on behind it, and one tells of all
			if errs == nil {
				errs = append(errs, &Error{Reason: ErrUnavailable, Operation: op, Cause: err})
			}
			continue
		}
		if err != nil {
			return 0, &Error{Reason: ErrUnavailable, Operation: op, Cause: err}
		}
		// Those not asked after for longest, lest the undecidable starve the rest.
		i, _ := slices.BinarySearchFunc(parked, f.Record.Updated, func(r store.Record, t time.Time) int { return r.Updated.Compare(t) })
		if i < limit {
			parked = slices.Insert(parked, i, f.Record)
			parked = parked[:min(len(parked), limit)]
		}
	}
	for i := range parked {
		switch err := g.reconcile(ctx, &parked[i]); {
		case err == nil:
			settled++
		case ctx.Err() != nil:
			return settled, errors.Join(append(errs, context.Cause(ctx))...)
		case !errors.Is(err, ErrChanged) && !errors.Is(err, errUndecided):
			errs = append(errs, err)
		}
	}
	return settled, errors.Join(errs...)
}

// Resolve is an operator's verdict on a parked call. It holds only if the
// record still is the one that the operator has seen, fence and all; else it
// is ErrChanged, and so is a record that is not parked.
func (g *Guard) Resolve(ctx context.Context, seen store.Record, v Verdict) error {
	op := Operation(seen.Key.Operation)
	if g == nil || g.st == nil {
		return invalid(op, errors.New("guard: is the zero Guard; make one with New"))
	}
	if v.kind == undecided {
		return invalid(op, errors.New("verdict: is the zero Verdict; say Happened, DidNotHappen or FailedForGood"))
	}
	if seen.State != store.Unknown {
		return &Error{Reason: ErrChanged, Operation: op, Cause: fmt.Errorf("it is %v; only a parked (unknown) record can be resolved", seen.State)}
	}
	s, err := g.settlement(v, seen.Attempt)
	if err != nil {
		return invalid(op, err)
	}
	p := g.change(&seen, s.State, s.Error)
	p.Outcome, p.Keep = s.Outcome, s.Keep
	if p.State == store.Released {
		p.Attempt = 0 // the operator's word counts for more than the limit of attempts
	}
	f, err := send(ctx, func() (store.Found, error) {
		f, err := g.st.Swap(ctx, seen.Seen(), p)
		if errors.Is(err, store.ErrTooLarge) {
			p.Outcome = tombstone(p.Outcome)
			f, err = g.st.Swap(ctx, seen.Seen(), p)
		}
		return f, err
	})
	switch {
	case errors.Is(err, store.ErrNotFound) || err == nil && !f.Won:
		return &Error{Reason: ErrChanged, Operation: op}
	case err != nil:
		return &Error{Reason: ErrUnavailable, Operation: op, Cause: err}
	}
	g.observe(ctx, Event{Kind: EventReconciled, Policy: seen.Policy, Attempt: seen.Attempt}, seen.Key)
	g.watch.wake(seen.Key)
	return nil
}
