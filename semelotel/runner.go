package semelotel

import (
	"context"
	"sync"

	"go.opentelemetry.io/otel/attribute"
	"go.opentelemetry.io/otel/trace"

	"github.com/semel-go/semel"
	"github.com/semel-go/semel/store"
)

// Runner is a semel.Runner that makes a span for each call. The context of the handler
// has the span. Make it with Telemetry.Runner. Safe for concurrent use.
type Runner struct {
	telemetry *Telemetry
	run       semel.Runner
}

// Runner wraps a runner, which must not be nil. The Options.Observe of its Guard must be
// t.Observe, which gives the spans their attributes. Do, the HTTP middleware and
// consumers take the Runner in place of the Guard or Atomic.
func (t *Telemetry) Runner(run semel.Runner) *Runner { return &Runner{t, run} }

// Unwrap returns the inner runner.
func (r *Runner) Unwrap() semel.Runner { return r.run }

// Run implements semel.Runner.
func (r *Runner) Run(ctx context.Context, call semel.Call, fn semel.Handler) (semel.Result, error) {
	ctx, span := r.telemetry.tracer.Start(ctx, spanName(call.Operation))
	defer span.End() // after a panic, too
	if !span.IsRecording() {
		return r.run.Run(ctx, call, fn)
	}
	if r.telemetry.key {
		span.SetAttributes(attribute.String("semel.key", call.Key))
	}
	ctx = context.WithValue(ctx, callKey{}, &callSpan{span: span})
	return r.run.Run(ctx, call, func(ctx context.Context, x *semel.Execution) (store.Outcome, error) {
		// Events of calls within the handler are not events of this call.
		return fn(context.WithValue(ctx, callKey{}, (*callSpan)(nil)), x)
	})
}

func spanName(operation string) string { return "semel " + operation }

// callSpan is the span of a call of a Runner. Safe for concurrent use: a Guard sends a claim
// that got no answer again in the background, while the call ends.
type callSpan struct {
	span trace.Span

	mu    sync.Mutex
	first trace.SpanContext // of the run that the record is of; invalid: not known
}

func (c *callSpan) firstRun() trace.SpanContext {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.first
}

// setFirstRun remembers the run, if it is valid. A known run is replaced only if replace is
// true.
func (c *callSpan) setFirstRun(run trace.SpanContext, replace bool) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if run.IsValid() && (replace || !c.first.IsValid()) {
		c.first = run
	}
}

type callKey struct{}

// callSpanOf finds the span of the call that a context is of, outside of its handler.
func callSpanOf(ctx context.Context) *callSpan {
	c, _ := ctx.Value(callKey{}).(*callSpan)
	return c
}
