package proxy

import (
	"errors"
	"log/slog"
	"net/http"

	"github.com/semel-go/semel/cmd/semel/internal/hook"
	"github.com/semel-go/semel/cmd/semel/internal/problem"
	"github.com/semel-go/semel/semelhttp"
)

// refuse writes a refusal of package semelhttp. If the authorize hook denied a
// replay, the client gets the status of the hook.
func (p *Proxy) refuse(w http.ResponseWriter, r *http.Request, why semelhttp.Problem) {
	if p, ok := limited(why.Err); ok {
		why = p
	}
	switch why.Code {
	case semelhttp.CodeTenantMissing:
		if p.Rule.Bearer() {
			w.Header().Set("WWW-Authenticate", "Bearer")
		}
	case semelhttp.CodeReplayForbidden:
		p.denied(w, &why)
	case semelhttp.CodeBodyUnreadable:
		if errors.Is(why.Err, errBodyTimeout) {
			cause := why.Err
			why = problem.BodyTimeout
			why.Err = cause
		}
	}
	level := slog.LevelDebug
	if why.Status >= http.StatusInternalServerError {
		level = slog.LevelWarn
	}
	p.Log.Log(r.Context(), level, "refused", "code", why.Code, "status", why.Status, "method", r.Method, "error", why.Err)
	problem.Write(w, why)
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
		why.Code, why.Title = "authorizer_unavailable", "Permission to see the earlier answer cannot be checked"
		why.Detail = "Nothing was done by this request. Repeat it with the same key."
		w.Header().Set("Retry-After", "1")
	}
}
