package proxy

import (
	"context"
	"errors"
	"log/slog"

	"github.com/semel-go/semel"
	"github.com/semel-go/semel/cmd/semel/internal/input"
	"github.com/semel-go/semel/cmd/semel/internal/limit"
	"github.com/semel-go/semel/internal/handlererr"
)

// logEvents makes an observer that logs each event as semel.LogEvents does, with method and
// path of the request. It logs one more kind of event as information: a run in doubt that
// leaves the key free, as after a 502 under retry.
func (p *Proxy) logEvents() func(context.Context, semel.Event) {
	log := semel.LogEvents(slog.New(requestHandler{p.events.Handler()}))
	return func(ctx context.Context, e semel.Event) {
		v := limit.FromContext(ctx)
		if v != nil && e.Err != nil {
			failed := e
			v.Event.Store(&failed)
		}
		if v != nil && e.Kind == semel.EventReplayed {
			v.Replayed.Store(true)
		}
		_, nothingDone := errors.AsType[*handlererr.NoEffect](e.Err)
		if v == nil || v.Request == nil || e.Kind != semel.EventReleased || !e.EndsCall || nothingDone {
			log(ctx, e)
			return
		}
		p.events.InfoContext(ctx, "the request failed, and its key is free again: a repeat is sent to the service again",
			append(p.requestFields(v.Request.WithContext(ctx)), "attempt", e.Attempt, "took", e.Took, "error", e.Err)...)
	}
}

// requestHandler adds method and path of the request in the context to each line.
type requestHandler struct{ slog.Handler }

// Handle implements slog.Handler.
func (h requestHandler) Handle(ctx context.Context, line slog.Record) error {
	if v := limit.FromContext(ctx); v != nil && v.Request != nil {
		line = line.Clone()
		line.AddAttrs(slog.String("method", input.Method(v.Request)), slog.String("path", input.Path(v.Request.URL)))
	}
	return h.Handler.Handle(ctx, line)
}
