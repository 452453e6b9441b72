package semel

import "errors"

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
