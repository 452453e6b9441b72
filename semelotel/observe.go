package semelotel

import (
	"context"
	"errors"
	"strings"
	"time"

	"go.opentelemetry.io/otel/attribute"
	"go.opentelemetry.io/otel/codes"
	"go.opentelemetry.io/otel/metric"
	"go.opentelemetry.io/otel/trace"

	"github.com/semel-go/semel"
)

// Observe makes a semel.Options.Observe. It calls next, too, unless next is nil.
func (t *Telemetry) Observe(next func(context.Context, semel.Event)) func(context.Context, semel.Event) {
	return func(ctx context.Context, e semel.Event) {
		t.observe(ctx, &e)
		if next != nil {
			next(ctx, e)
		}
	}
}

func (t *Telemetry) observe(ctx context.Context, e *semel.Event) {
	c := callSpanOf(ctx)
	outcome := e.Outcome()
	if outcome == "" {
		if c != nil {
			c.span.AddEvent("semel." + strings.ReplaceAll(e.Kind, " ", "_"))
		}
		return
	}
	labels := t.labelsOf(e.Operation, outcome)
	t.calls.Add(ctx, 1, labels.count...)
	if e.Took > 0 {
		t.handlers.Record(ctx, e.Took.Seconds(), labels.measure...)
	}
	if outcome == "lease_lost" {
		t.lost.Add(ctx, 1, metric.WithAttributes(attribute.String("semel.operation", e.Operation)))
	}
	if c != nil {
		c.setFirstRun(traceOf(e.Holder), false) // an Atomic's records do not come through a Store
		t.describe(c.span, e, outcome)
		c.addLink()
		return
	}
	now := time.Now()
	start := []trace.SpanStartOption{trace.WithTimestamp(now.Add(-e.Took))}
	if first := traceOf(e.Holder); first.IsValid() {
		start = append(start, trace.WithLinks(trace.Link{SpanContext: first}))
	}
	_, span := t.tracer.Start(ctx, spanName(e.Operation), start...)
	t.describe(span, e, outcome)
	span.End(trace.WithTimestamp(now))
}

// callLabels are the labels of semel.calls and semel.handler.duration.
type callLabels struct {
	count   []metric.AddOption
	measure []metric.RecordOption
}

// labelsOf returns the labels of calls with this end. They are made once: to make them
// takes longer than to count. There are as many as the metric has series.
func (t *Telemetry) labelsOf(operation, outcome string) *callLabels {
	key := [2]string{operation, outcome}
	if l, ok := t.labels.Load(key); ok {
		return l.(*callLabels)
	}
	set := metric.WithAttributeSet(attribute.NewSet(attribute.String("semel.operation", operation), attribute.String("semel.outcome", outcome)))
	l, _ := t.labels.LoadOrStore(key, &callLabels{[]metric.AddOption{set}, []metric.RecordOption{set}})
	return l.(*callLabels)
}

// describe gives a span its attributes and its status.
func (t *Telemetry) describe(span trace.Span, e *semel.Event, outcome string) {
	if !span.IsRecording() {
		return
	}
	span.SetAttributes(
		attribute.String("semel.operation", e.Operation), attribute.String("semel.outcome", outcome), attribute.String("semel.policy", e.Policy.String()),
		attribute.Int("semel.attempt", e.Attempt), attribute.String("semel.key_hash", e.Key),
	)
	if t.tenant {
		span.SetAttributes(attribute.String("semel.tenant", e.Tenant))
	}
	switch outcome {
	case "failed", "released", "parked", "not_stored", "lease_lost", "refused_parked", "refused_store_unavailable", "refused":
		kind := outcome
		if f, ok := errors.AsType[*semel.Failure](e.Err); ok && f != nil && f.Code != "" {
			kind = f.Code
		}
		span.SetAttributes(attribute.String("error.type", kind))
		span.SetStatus(codes.Error, outcome)
	}
}

// addLink links the span of a duplicate to that of the run that the record is of.
func (c *callSpan) addLink() {
	if first := c.firstRun(); first.IsValid() && first.SpanID() != c.span.SpanContext().SpanID() {
		c.span.AddLink(trace.Link{SpanContext: first})
	}
}
