package semelotel

import (
	"context"
	"encoding/hex"
	"strings"
	"time"

	"go.opentelemetry.io/otel/attribute"
	"go.opentelemetry.io/otel/metric"
	"go.opentelemetry.io/otel/trace"

	"github.com/semel-go/semel/store"
	"github.com/semel-go/semel/store/timed"
)

// Store is a store whose requests are measured, and whose records have the traces of
// their runs. Its optional interfaces are those of the inner store. Make it with
// Telemetry.Store. Safe for concurrent use.
type Store struct{ *timed.Store }

// Store wraps a store, which must not be nil. In each claim it writes the trace of the
// call before the holder, in the form of a W3C traceparent, if the trace is sampled:
// 62 bytes for each record. semel inspect and the console show it.
func (t *Telemetry) Store(st store.Store) *Store {
	labels := map[storeLabels][]metric.RecordOption{} // made once, because each request needs one
	for _, request := range timed.Requests() {
		for _, answered := range []bool{true, false} {
			labels[storeLabels{request, answered}] = []metric.RecordOption{metric.WithAttributeSet(attribute.NewSet(
				attribute.String("semel.store.request", request), attribute.Bool("semel.store.answered", answered)))}
		}
	}
	return &Store{timed.New(st, func(ctx context.Context, request string, took time.Duration, err error) {
		t.requests.Record(ctx, took.Seconds(), labels[storeLabels{request, timed.Answered(err)}]...)
	})}
}

// storeLabels are the labels of semel.store.duration.
type storeLabels struct {
	request  string
	answered bool
}

// Claim implements store.Store.
func (s *Store) Claim(ctx context.Context, p store.Proposal) (store.Found, error) {
	run := trace.SpanContextFromContext(ctx)
	p.Holder = withTrace(p.Holder, run)
	f, err := s.Store.Claim(ctx, p)
	note(ctx, run, &f, err)
	return f, err
}

// Swap implements store.Store. A reconciler's claim keeps the trace of the run that it
// is about.
func (s *Store) Swap(ctx context.Context, seen store.Seen, p store.Proposal) (store.Found, error) {
	run := trace.SpanContextFromContext(ctx)
	if c := callSpanOf(ctx); seen.State == store.Unknown || p.State == store.Unknown || p.State.Terminal() {
		run = trace.SpanContext{}
		if c != nil {
			run = c.firstRun()
		}
	}
	p.Holder = withTrace(p.Holder, run)
	f, err := s.Store.Swap(ctx, seen, p)
	note(ctx, run, &f, err)
	return f, err
}

// Get implements store.Store.
func (s *Store) Get(ctx context.Context, k store.Key) (store.Found, error) {
	f, err := s.Store.Get(ctx, k)
	note(ctx, trace.SpanContext{}, &f, err)
	return f, err
}

// note remembers the run of the record: the one that was found, or else the one that has
// won.
func note(ctx context.Context, run trace.SpanContext, f *store.Found, err error) {
	c := callSpanOf(ctx)
	switch {
	case c == nil || err != nil:
	case f.Won:
		c.setFirstRun(run, false)
	default:
		c.setFirstRun(traceOf(f.Record.Holder), true)
	}
}

// A holder with a trace begins with tracePrefix, a traceparent of version 0 and a
// space. The trace comes first, because the end of a holder tells a reconciler.
const (
	tracePrefix = "trace=00-"
	traceLength = len(tracePrefix) + 32 + 1 + 16 + len("-01")
)

// withTrace writes a run before the holder if the run is sampled.
func withTrace(holder string, run trace.SpanContext) string {
	if !run.IsValid() || !run.IsSampled() || strings.HasPrefix(holder, tracePrefix) {
		return holder
	}
	var b [traceLength]byte
	traceID, spanID := run.TraceID(), run.SpanID()
	at := copy(b[:], tracePrefix)
	at += hex.Encode(b[at:], traceID[:])
	at += copy(b[at:], "-")
	at += hex.Encode(b[at:], spanID[:])
	copy(b[at:], "-01")
	if holder == "" {
		return string(b[:])
	}
	return string(b[:]) + " " + holder
}

// TxHolder is a semel.Options.TxHolder. It does for calls in a transaction what
// Telemetry.Store does for the others: if the trace of the context is sampled, it comes
// before the holder.
func (t *Telemetry) TxHolder(ctx context.Context, holder string) string {
	return withTrace(holder, trace.SpanContextFromContext(ctx))
}

// traceOf reads the run from a holder. The result is invalid if there is none.
func traceOf(holder string) trace.SpanContext {
	if len(holder) < traceLength || !strings.HasPrefix(holder, tracePrefix) {
		return trace.SpanContext{}
	}
	text := holder[len(tracePrefix):traceLength]
	traceID, err := trace.TraceIDFromHex(text[:32])
	if err != nil || text[32] != '-' {
		return trace.SpanContext{}
	}
	spanID, err := trace.SpanIDFromHex(text[33:49])
	if err != nil {
		return trace.SpanContext{}
	}
	return trace.NewSpanContext(trace.SpanContextConfig{TraceID: traceID, SpanID: spanID, TraceFlags: trace.FlagsSampled, Remote: true})
}
