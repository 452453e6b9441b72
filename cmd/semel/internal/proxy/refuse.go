package proxy

import (
	"context"
	"errors"
	"io"
	"log/slog"
	"net/http"
	"time"

	"github.com/semel-go/semel"
	"github.com/semel-go/semel/cmd/semel/internal/hook"
	"github.com/semel-go/semel/cmd/semel/internal/input"
	"github.com/semel-go/semel/cmd/semel/internal/limit"
	"github.com/semel-go/semel/cmd/semel/internal/problem"
	"github.com/semel-go/semel/cmd/semel/internal/scope"
	"github.com/semel-go/semel/semelhttp"
	"github.com/semel-go/semel/store"
)

// refuse writes a refusal of package semelhttp. If the authorize hook denied a
// replay, the client gets the status of the hook.
func (p *Proxy) refuse(w http.ResponseWriter, r *http.Request, why semelhttp.Problem) {
	l, full := limited(why.Err)
	hungUp := false
	if full {
		why = l
		p.warnOfLimit(r, why.Err)
		if why.Code == problem.TenantLimit.Code {
			hungUp = !p.pause(r)
		}
	}
	refused(r, &why)
	switch why.Code {
	case semelhttp.CodeTenantMissing:
		if p.Rule.Bearer() {
			w.Header().Set("WWW-Authenticate", "Bearer")
		}
	case semelhttp.CodeReplayForbidden:
		p.denied(w, &why)
	case semelhttp.CodePayloadMalformed:
		if e, ok := errors.AsType[*otherCapitalsError](why.Err); ok {
			why.Detail = "In the request body " + e.Error() + ". Nothing was done."
		}
	case semelhttp.CodeBodyUnreadable:
		if errors.Is(why.Err, errBodyTimeout) {
			cause := why.Err
			why = problem.BodyTimeout
			why.Err = cause
		}
	}
	level := slog.LevelDebug
	if why.Status >= http.StatusInternalServerError && !full && !byStranger(r, why.Err) {
		level = slog.LevelWarn
	}
	if p.events.Enabled(r.Context(), level) { // a flood of refusals makes no fields that nobody reads
		p.events.Log(r.Context(), level, "refused", append(p.requestFields(r), "code", why.Code, "status", why.Status, "error", why.Err)...)
	}
	if hungUp && observationFrom(r.Context()) == nil {
		panic(http.ErrAbortHandler) // closes the connection: nobody would read the answer
	}
	problem.Write(w, why)
}

// byStranger reports whether anybody can cause the error of a refusal, as often as they like:
// by a token with an unknown key, or by a request whose client hangs up. It is no warning then.
func byStranger(r *http.Request, err error) bool {
	hungUp := errors.Is(err, semel.ErrCanceled) || r.Context().Err() != nil && errors.Is(err, context.Canceled)
	return hungUp || errors.Is(err, scope.ErrFetching) || errors.Is(err, scope.ErrOutdated)
}

// requestFields are the fields of each log line about a request: operation, tenant and key
// of its call, as events have them, and method and path. If the request was refused before
// it made a call, there is no operation and no key.
func (p *Proxy) requestFields(r *http.Request) []any {
	var call []any
	if v := limit.FromContext(r.Context()); v != nil {
		if e := v.Event.Load(); e != nil {
			call = []any{"operation", e.Operation, "tenant", e.Tenant, "key", e.Key}
		}
	}
	if call == nil {
		call = []any{"tenant", p.loggedTenant(r)}
	}
	return append(call, "method", input.Method(r), "path", input.Path(r.URL))
}

// loggedTenant is the tenant of a request as events have it: hashed, with HashKeys. It is
// empty if all share their keys, or if the tenant is not known.
func (p *Proxy) loggedTenant(r *http.Request) string {
	return store.Key{Tenant: limit.FromContext(r.Context()).Tenant()}.Hashed(p.HashKeys).Tenant
}

// warnOfLimit logs the first refusal of a flood, so that a flood writes one line.
func (p *Proxy) warnOfLimit(r *http.Request, err error) {
	e, ok := errors.AsType[*limit.Error](err)
	if !ok || !e.First {
		return
	}
	log, who := p.events, "all tenants"
	if e.Kind.Tenant() {
		log, who = log.With("tenant", p.loggedTenant(r)), "a tenant"
	}
	log.Warn("a limit refuses requests of "+who+"; to allow more, raise the option; the next warning comes after a minute without refusals",
		"limit", e.Kind, "option", p.Config.Where(e.Kind.Option()), "value", p.Config.Limits.Value(e.Kind))
}

// smallBody is the largest body, in bytes, that is read before a pause.
const smallBody = 4 << 10

// pause delays the refusal of a tenant that is over a limit. A client that ignores
// Retry-After sends its next request when it has the answer to this one, so the pause
// leaves the processor to others. A stop of the proxy ends the pause. A request without a
// place of its tenant costs no more than its connection, and others may have its place among
// all. pause reports whether the client still waits at the end.
func (p *Proxy) pause(r *http.Request) bool {
	if p.Config.RefusalPause == 0 {
		return true
	}
	limit.FromContext(r.Context()).EndUnadmitted()
	if b, ok := r.Body.(*timedBody); ok {
		b.visit = nil // the rest of the body is discarded, so it counts for no limit
	}
	if r.Header.Get("Expect") == "" {
		// The server notices that a client has hung up only after the whole body.
		_, _ = io.CopyN(io.Discard, r.Body, smallBody)
	}
	t := time.NewTimer(p.Config.RefusalPause)
	defer t.Stop()
	select {
	case <-t.C:
		return true
	case <-p.draining:
		return true
	case <-r.Context().Done():
		return false
	}
}

func (p *Proxy) denied(w http.ResponseWriter, why *semelhttp.Problem) {
	d, ok := errors.AsType[*hook.Denied](why.Err)
	if !ok {
		return
	}
	why.Status = d.Status
	switch d.Status {
	case http.StatusUnauthorized:
		challenge := d.Challenge
		if challenge == "" {
			challenge = "Bearer"
		}
		w.Header().Set("WWW-Authenticate", challenge)
	case http.StatusServiceUnavailable:
		err := why.Err
		*why = problem.AuthorizerUnavailable
		why.Err = err
	}
}
