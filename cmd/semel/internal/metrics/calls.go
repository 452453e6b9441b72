package metrics

import (
	"context"
	"errors"
	"slices"
	"strings"
	"sync/atomic"

	"github.com/prometheus/client_golang/prometheus"

	"github.com/semel-go/semel"
)

// kinds are the values of the label "kind", in the words of semel.Kind. An event of
// another kind, which a later version may add, counts as the last.
var kinds = [...]string{
	semel.EventExecuted, semel.EventFailed, semel.EventReleased, semel.EventParked, semel.EventReplayed, semel.EventRefused,
	semel.EventNotStored, semel.EventUnprotected, semel.EventTakenOver, semel.EventReconciled,
	busy, mismatch, parked, unavailable, leaseLost, "other",
}

// These kinds are refusals, and outcomes that were not stored, by their reason.
const (
	busy        = "refused: in progress"
	mismatch    = "refused: mismatch"
	parked      = "refused: parked"
	unavailable = "refused: store unavailable"
	leaseLost   = "lease lost"
)

// outcomes are the values of the label "outcome".
var outcomes = semel.EventOutcomes()

func kindOf(e *semel.Event) string {
	switch e.Kind {
	case semel.EventRefused:
		for _, r := range []struct {
			reason error
			kind   string
		}{
			{semel.ErrInProgress, busy}, {semel.ErrReleased, busy}, {semel.ErrMismatch, mismatch}, {semel.ErrParked, parked},
			{semel.ErrUnavailable, unavailable},
		} {
			if errors.Is(e.Err, r.reason) {
				return r.kind
			}
		}
	case semel.EventNotStored:
		if errors.Is(e.Err, semel.ErrLeaseLost) {
			return leaseLost
		}
	}
	return e.Kind
}

// index is the place of a kind in kinds.
func index(kind string) int {
	if i := slices.Index(kinds[:], kind); i >= 0 {
		return i
	}
	return len(kinds) - 1
}

// Calls counts the events of one rule.
type Calls struct {
	operation, rule string
	byKind          [len(kinds)]atomic.Uint64
	byOutcome       []atomic.Uint64 // in the order of outcomes
	unkeyed         atomic.Uint64
	upstream        prometheus.Observer
}

// Calls adds the counts of a rule. Not safe for concurrent use.
func (r *Registry) Calls(operation, rule string) *Calls {
	registry := r.init()
	if len(r.calls.all) == 0 {
		registry.MustRegister(&r.calls, r.upstream)
	}
	c := &Calls{operation: operation, rule: rule, byOutcome: make([]atomic.Uint64, len(outcomes)), upstream: r.upstream.WithLabelValues(operation, rule)}
	r.calls.all = append(r.calls.all, c)
	return c
}

// Unkeyed counts a request that passes without a key, and reports whether it is the
// first.
func (c *Calls) Unkeyed() (first bool) { return c.unkeyed.Add(1) == 1 }

// Observe counts an event: a semel.Options.Observe.
func (c *Calls) Observe(_ context.Context, e semel.Event) {
	c.byKind[index(kindOf(&e))].Add(1)
	outcome := slices.Index(outcomes, e.Outcome())
	if outcome < 0 {
		return
	}
	c.byOutcome[outcome].Add(1)
	if e.Took > 0 {
		c.upstream.Observe(e.Took.Seconds())
	}
}

// callsCollector writes the counts of all rules. Each count is there from the start, so
// that an alert on its rate sees the first event.
type callsCollector struct{ all []*Calls }

var (
	eventsDesc = prometheus.NewDesc("semel_events_total",
		"Events of calls by kind, with those on the way and in the background; see semel.Event.", []string{"kind", "operation", "rule"}, nil)
	callsDesc = prometheus.NewDesc("semel_calls_total",
		"Calls that have ended, each once, by outcome; see semel.Event.Outcome.", []string{"outcome", "operation", "rule"}, nil)
	unkeyedDesc = prometheus.NewDesc("semel_unkeyed_requests_total",
		"Requests of a protected method that passed without a key, unprotected.", []string{"operation", "rule"}, nil)
)

// Describe implements prometheus.Collector.
func (*callsCollector) Describe(c chan<- *prometheus.Desc) {
	for _, d := range []*prometheus.Desc{eventsDesc, callsDesc, unkeyedDesc} {
		c <- d
	}
}

var labelText = strings.NewReplacer(": ", "_", " ", "_")

// Collect implements prometheus.Collector.
func (all *callsCollector) Collect(to chan<- prometheus.Metric) {
	count := func(d *prometheus.Desc, n *atomic.Uint64, labels ...string) {
		to <- prometheus.MustNewConstMetric(d, prometheus.CounterValue, float64(n.Load()), labels...)
	}
	for _, c := range all.all {
		for i, kind := range kinds {
			count(eventsDesc, &c.byKind[i], labelText.Replace(kind), c.operation, c.rule)
		}
		for i, outcome := range outcomes {
			count(callsDesc, &c.byOutcome[i], outcome, c.operation, c.rule)
		}
		count(unkeyedDesc, &c.unkeyed, c.operation, c.rule)
	}
}
