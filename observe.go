package semel

import (
	"context"
	"errors"
	"log/slog"
	"time"

	"github.com/semel-go/semel/internal/callback"
	"github.com/semel-go/semel/internal/txevents"
	"github.com/semel-go/semel/store"
)

// Event is something that happened to a call. It holds no key and no payload.
type Event struct {
	// Kind is one of the Event constants.
	Kind string
	// EndsCall is true for the one event that says how a call ended, and false
	// for what happens on the way or in the background. An invalid call has no
	// event. In a transaction that the caller commits, and of a call within the handler
	// of another, the event comes before the commit.
	EndsCall  bool
	Operation string
	Tenant    string // as in the store: hashed, with Options.HashKeys; empty: Shared
	Key       string // the first 8 hexadecimal digits of the key's hash
	Policy    Policy
	Attempt   int
	// Took is how long the handler ran. Zero: the event does not end a run.
	Took time.Duration
	// Err is the error of the call, of the attempt or of the store, or nil.
	Err error
	// Holder is the holder of the record that a duplicate has found: see
	// Options.Holder. It is empty for the run of a handler.
	Holder string
}

// The kinds of events.
const (
	// EventExecuted: the handler ran and its result is kept.
	EventExecuted = "executed"
	// EventFailed: the key has ended with a failure that is kept: the handler
	// returned it, or no attempt is left.
	EventFailed = "failed"
	// EventReleased: an attempt failed or was given back. Nothing is kept, and
	// the call may run again.
	EventReleased = "released"
	// EventParked: it is not known whether the effect happened, so the call is
	// parked, or stays so.
	EventParked = "parked"
	// EventReplayed: a duplicate got the kept result or, in Err, the kept failure.
	EventReplayed = "replayed"
	// EventRefused: the handler did not run. Err has the reason.
	EventRefused = "refused"
	// EventNotStored: the handler ran, but the store does not have its outcome:
	// the lease was lost, the store did not answer, or the transaction of the call was
	// not committed, or may not be. See Err.
	EventNotStored = "not stored"
	// EventUnprotected: the handler ran without a record, because the store did
	// not answer (Options.UnprotectedOnOutage). An EventRefused, which does not end
	// the call, comes before it.
	EventUnprotected = "unprotected"
	// EventTakenOver: the call took over a claim whose lease had expired.
	EventTakenOver = "taken over"
	// EventReconciled: a reconciler or an operator decided a parked call.
	EventReconciled = "reconciled"
	// EventReopened: an operator reopened a failed call; Err says who and why.
	EventReopened = "reopened"
)

func (g *Guard) observe(ctx context.Context, e Event, k store.Key) {
	if g.options.Observe == nil && !e.needsOperator() {
		return
	}
	e.Operation, e.Tenant, e.Key = k.Operation, k.Tenant, k.Short()
	if h := txevents.From(ctx); h != nil {
		h.Add(e.EndsCall, func(err error) { g.report(ctx, e.afterTx(err)) })
		return
	}
	g.report(ctx, e)
}

func (g *Guard) report(ctx context.Context, e Event) {
	observe := g.options.Observe
	if observe == nil {
		observe = LogEvents(nil)
	}
	callback.Report(ctx, "semel: Observe", func() { observe(ctx, e) })
}

// needsOperator reports whether a Guard without Options.Observe logs the event. A call that
// was refused because of an outage is not logged, because its caller gets the error.
func (e *Event) needsOperator() bool {
	return e.level() >= slog.LevelWarn && (e.Kind != EventRefused || !errors.Is(e.Err, ErrUnavailable))
}

// afterTx is an event of a call in a transaction after the call has ended with err. If
// the transaction was not committed, the store does not have the outcome.
func (e Event) afterTx(err error) Event {
	_, kept := errors.AsType[*Failure](err)
	stored := e.Kind == EventExecuted || e.Kind == EventFailed
	switch {
	case err == nil || kept:
	case stored || e.Kind == EventReleased && errors.Is(err, ErrInDoubt):
		e.Kind, e.Err = EventNotStored, err
	case e.Kind == EventReplayed && !errors.Is(err, ErrNotKept): // the caller did not get the result
		e.Kind, e.Err = EventRefused, err
	}
	return e
}

// observeEnd reports how a run ended. Without Options.Observe, a call that stays parked after a
// reconciler's run is not logged again: it was when it was parked.
func (g *Guard) observeEnd(ctx context.Context, x *Execution, kind string, err error) {
	if g.options.Observe == nil && (kind == EventExecuted || x.reconciling) {
		return
	}
	g.observe(ctx, Event{
		Kind: kind, EndsCall: !x.reconciling, Policy: x.policy, Attempt: x.attempt, Took: now().since(x.started), Err: err,
	}, x.key)
}

// refusals are the reasons that Outcome names. The first that fits counts.
var refusals = [...]struct {
	reason  error
	outcome string
}{
	{ErrInProgress, "refused_in_progress"},
	{ErrReleased, "refused_in_progress"},
	{ErrMismatch, "refused_mismatch"},
	{ErrParked, "refused_parked"},
	{ErrUnavailable, "refused_store_unavailable"},
	{ErrCanceled, "refused_canceled"},
}

// eventOutcomes are the outcomes of events that need no reason.
var eventOutcomes = map[string]string{
	EventExecuted: "executed", EventFailed: "failed", EventReleased: "released", EventParked: "parked", EventReplayed: "replayed",
	EventNotStored: "not_stored", EventUnprotected: "unprotected", EventRefused: "refused",
}

// Outcome says how a call ended, in a word for metrics and traces: "executed",
// "failed", "released", "parked", "replayed", "unprotected", "not_stored", "lease_lost"
// or, if the handler did not run, "refused_in_progress", "refused_mismatch",
// "refused_parked", "refused_store_unavailable", "refused_canceled" or "refused". It
// is empty if the event does not end a call. So each call is counted once.
func (e *Event) Outcome() string {
	switch {
	case !e.EndsCall:
		return ""
	case e.Kind == EventRefused:
		for _, r := range refusals {
			if errors.Is(e.Err, r.reason) {
				return r.outcome
			}
		}
	case e.Kind == EventNotStored && errors.Is(e.Err, ErrLeaseLost):
		return "lease_lost"
	}
	return eventOutcomes[e.Kind]
}

// EventOutcomes are the results of Event.Outcome, without the empty one.
func EventOutcomes() []string {
	return []string{
		"executed", "failed", "released", "parked", "replayed", "unprotected", "not_stored", "lease_lost", "refused_in_progress",
		"refused_mismatch", "refused_parked", "refused_store_unavailable", "refused_canceled", "refused",
	}
}

// level says how important an event is for an operator.
func (e *Event) level() slog.Level {
	switch e.Kind {
	case EventParked, EventNotStored, EventUnprotected:
		return slog.LevelWarn
	case EventTakenOver, EventReconciled, EventReopened:
		return slog.LevelInfo
	case EventReleased:
		if !e.EndsCall { // an expired claim, or a claim whose caller left
			return slog.LevelInfo
		}
	case EventFailed:
		if errors.Is(e.Err, &Failure{Code: CodeAttemptsExhausted}) || !e.EndsCall {
			return slog.LevelWarn
		}
	case EventRefused:
		switch {
		case errors.Is(e.Err, ErrUnavailable), errors.Is(e.Err, store.ErrCorrupt):
			return slog.LevelWarn
		case !errors.Is(e.Err, ErrInProgress) && !errors.Is(e.Err, ErrReleased) && !errors.Is(e.Err, ErrParked):
			return slog.LevelInfo
		}
	}
	return slog.LevelDebug
}

// LogEvents makes an Options.Observe that logs each event: doubt and trouble as
// warnings, recoveries and refusals as information, the rest for debugging. Nil:
// slog.Default().
func LogEvents(l *slog.Logger) func(context.Context, Event) {
	if l == nil {
		l = slog.Default()
	}
	return func(ctx context.Context, e Event) {
		level := e.level()
		if !l.Enabled(ctx, level) {
			return
		}
		attrs := []slog.Attr{
			slog.String("operation", e.Operation), slog.String("tenant", e.Tenant), slog.String("key", e.Key),
			slog.String("policy", e.Policy.String()), slog.Int("attempt", e.Attempt),
		}
		if e.Took > 0 {
			attrs = append(attrs, slog.Duration("took", e.Took))
		}
		if e.Err != nil {
			attrs = append(attrs, slog.Any("error", e.Err))
		}
		l.LogAttrs(ctx, level, "semel: "+e.Kind, attrs...)
	}
}
