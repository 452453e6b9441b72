package semelhttp

import (
	"errors"
	"net/http"

	"github.com/semel-go/semel"
	"github.com/semel-go/semel/store"
)

// Accept makes a handler that takes requests now for work that is done later.
// It reserves the key and calls fn with the ticket, for each duplicate again.
// If t.Result is nil, fn hands t.Token to whatever brings it to the worker,
// each time, and answers 202 only when that has succeeded; else the work is
// done, and fn answers with t.Result. fn can read the body from its start. It is
// not called for a result that was too large to keep, which is answered by its
// status, or 200, and "Semel-Outcome: not-kept".
//
// What fn answers is not kept, so it must answer alike each time; duplicates
// are marked as replays, but not by a 5xx or the like, after which they are to
// come again. A worker's *semel.Failure is answered by a problem with the code
// "failed", which Options.Refuse can write otherwise.
//
// Every method is protected. Optional is refused, and options that speak of
// kept answers have no meaning but Authorize, which is asked before fn gets a
// result. Nil arguments and wrong options are errors. The handler is safe for
// concurrent use.
func Accept(g *semel.Guard, tenant TenantFunc, fn func(w http.ResponseWriter, r *http.Request, t semel.Ticket), o *Options) (http.Handler, error) {
	c, err := o.config()
	if g == nil {
		err = errors.Join(errors.New("semelhttp: g: is nil; make a Guard with semel.New"), err)
	}
	if tenant == nil {
		err = errors.Join(errNilTenant, err)
	}
	if fn == nil {
		err = errors.Join(errors.New("semelhttp: fn: is nil; it answers the accepted requests"), err)
	}
	if c.Optional {
		err = errors.Join(errors.New("semelhttp: Optional: is set; without a key nothing can be accepted"), err)
	}
	if err != nil {
		return nil, err
	}
	return &acceptor{c, g, tenant, fn}, nil
}

type acceptor struct {
	cfg    *config
	guard  *semel.Guard
	tenant TenantFunc
	fn     func(w http.ResponseWriter, r *http.Request, t semel.Ticket)
}

// ServeHTTP implements http.Handler.
func (a *acceptor) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	e := newExchange(a.cfg, w, r)
	defer e.end()
	call, _, p := a.cfg.intake(r, a.tenant, &e.spool)
	if p != nil {
		a.cfg.refuse(w, r, p)
		return
	}
	t, err := a.guard.Reserve(r.Context(), call)
	if err != nil {
		var left store.Outcome // of a result that was not kept
		if t.Result != nil {
			left = t.Result.Outcome
		}
		a.cfg.duplicate(w, r, left, err)
		return
	}
	if t.Result != nil && a.cfg.Authorize != nil {
		if err := a.cfg.Authorize(r); err != nil {
			a.cfg.refuse(w, r, problem(CodeReplayForbidden, err))
			return
		}
	}
	if !t.Fresh {
		w.Header().Set(a.cfg.ReplayedHeader, "true")
		if t.Result == nil {
			w = &unmarker{ResponseWriter: w, mark: a.cfg.ReplayedHeader}
		}
	}
	a.fn(w, e.spooled(), t)
}

// unmarker takes the mark of a replay off an answer by which the token was not
// handed on. Clients take a replay for the last word, and would not come again.
type unmarker struct {
	http.ResponseWriter
	mark string
}

// WriteHeader implements http.ResponseWriter.
func (u *unmarker) WriteHeader(status int) {
	if status >= 200 && !keepDefault(status) {
		u.Header().Del(u.mark)
	}
	u.ResponseWriter.WriteHeader(status)
}

// Flush implements http.Flusher.
func (u *unmarker) Flush() { _ = http.NewResponseController(u.ResponseWriter).Flush() }

// Unwrap is for http.ResponseController.
func (u *unmarker) Unwrap() http.ResponseWriter { return u.ResponseWriter }
