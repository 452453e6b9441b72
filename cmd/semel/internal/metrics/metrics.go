// Package metrics counts what happened to calls, and writes the counts in the
// text format of Prometheus. Its labels are bounded: kinds are a fixed set,
// and operations and rules come from the configuration.
package metrics

import (
	"context"
	"errors"
	"fmt"
	"io"
	"slices"
	"strings"
	"sync/atomic"
	"time"

	"github.com/semel-go/semel"
)

// kinds are the values of the label "kind". An event of another kind, which a
// later version may add, counts as the last.
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

// Registry holds all counts of a process. Safe for concurrent use, once it is
// set up.
type Registry struct {
	calls    []*Calls
	values   []value
	families []family
}

// family is a counter with labels.
type family struct {
	name, help string
	each       func(yield func(labels string, n uint64) bool)
}

// Counters adds a counter with labels. WriteTo reads its values from each, which yields
// the labels of a value as the text format has them, made by Label. Not safe for
// concurrent use.
func (r *Registry) Counters(name, help string, each func(yield func(labels string, n uint64) bool)) {
	r.families = append(r.families, family{name, help, each})
}

// Label writes a label for Counters. The caller joins several by commas.
func Label(name, value string) string { return name + "=" + quote(value) }

type value struct {
	name, kind, help string
	read             func() float64
}

// Calls counts the events of one rule.
type Calls struct {
	operation, rule string
	byKind          [len(kinds)]atomic.Uint64
	runs            atomic.Uint64
	took            atomic.Int64 // nanoseconds
	unkeyed         atomic.Uint64
}

// Unkeyed counts a request that passes without a key, and reports whether it is the
// first.
func (c *Calls) Unkeyed() (first bool) { return c.unkeyed.Add(1) == 1 }

// Calls adds the counts of a rule. Not safe for concurrent use.
func (r *Registry) Calls(operation, rule string) *Calls {
	c := &Calls{operation: operation, rule: rule}
	r.calls = append(r.calls, c)
	return c
}

// Counter adds a counter whose value WriteTo reads. Not safe for
// concurrent use.
func (r *Registry) Counter(name, help string, read func() float64) {
	r.values = append(r.values, value{name, "counter", help, read})
}

// Gauge adds a gauge whose value WriteTo reads. Not safe for concurrent use.
func (r *Registry) Gauge(name, help string, read func() float64) {
	r.values = append(r.values, value{name, "gauge", help, read})
}

// Observe counts an event: a semel.Options.Observe.
func (c *Calls) Observe(_ context.Context, e semel.Event) {
	c.byKind[index(kindOf(&e))].Add(1)
	if e.Took > 0 {
		c.runs.Add(1)
		c.took.Add(int64(e.Took))
	}
}

// Count is how many events of a kind there were.
func (c *Calls) Count(kind string) uint64 { return c.byKind[index(kind)].Load() }

// WriteTo writes all metrics. It omits counts of events that never occurred.
func (r *Registry) WriteTo(w io.Writer) (int64, error) {
	var b strings.Builder
	head := func(name, kind, help string) {
		fmt.Fprintf(&b, "# HELP %s %s\n# TYPE %s %s\n", name, help, name, kind)
	}
	if len(r.calls) > 0 {
		r.writeCalls(&b, head)
	}
	for _, v := range r.values {
		head(v.name, v.kind, v.help)
		fmt.Fprintf(&b, "%s %g\n", v.name, v.read())
	}
	for _, f := range r.families {
		head(f.name, "counter", f.help)
		for labels, n := range f.each {
			fmt.Fprintf(&b, "%s{%s} %d\n", f.name, labels, n)
		}
	}
	n, err := io.WriteString(w, b.String())
	return int64(n), err
}

// writeCalls writes the counts of all rules.
func (r *Registry) writeCalls(b *strings.Builder, head func(name, kind, help string)) {
	head("semel_events_total", "counter", "Events of calls by kind; see semel.Kind.")
	for _, c := range r.calls {
		for i, kind := range kinds {
			name := strings.NewReplacer(": ", "_", " ", "_").Replace(kind)
			if n := c.byKind[i].Load(); n > 0 {
				fmt.Fprintf(b, "semel_events_total{kind=%s,%s} %d\n", quote(name), c.labels(), n)
			}
		}
	}
	head("semel_upstream_seconds", "summary", "Time that the upstream took for requests that reached it.")
	for _, c := range r.calls {
		if n := c.runs.Load(); n > 0 {
			fmt.Fprintf(b, "semel_upstream_seconds_sum{%s} %g\nsemel_upstream_seconds_count{%s} %d\n",
				c.labels(), time.Duration(c.took.Load()).Seconds(), c.labels(), n)
		}
	}
	head("semel_unkeyed_requests_total", "counter", "Requests of a protected method that passed without a key, unprotected.")
	for _, c := range r.calls {
		if n := c.unkeyed.Load(); n > 0 {
			fmt.Fprintf(b, "semel_unkeyed_requests_total{%s} %d\n", c.labels(), n)
		}
	}
}

func (c *Calls) labels() string {
	return "operation=" + quote(c.operation) + ",rule=" + quote(c.rule)
}

var escape = strings.NewReplacer(`\`, `\\`, `"`, `\"`, "\n", `\n`)

// quote writes a label's value.
func quote(s string) string { return `"` + escape.Replace(s) + `"` }
