package semelhttp

import (
	"errors"
	"net/http"

	"github.com/semel-go/semel"
	"github.com/semel-go/semel/store"
)

// Accept makes a handler that takes a request now for work that is done later. It
// reserves the key and calls fn with the ticket, for the first request and for each
// duplicate:
//
//   - If t.Result is nil, fn sends t.Token to the worker, each time, and answers
//     202 after that has succeeded.
//   - If t.Result is set, the work is done, and fn answers with it. If the result
//     was too large to keep, fn is not called: the answer has the result's status,
//     or 200, and "Semel-Outcome: not-kept".
//
// The answer of fn is not kept, so fn should answer the same each time; it can read
// the body from its start. If the work has failed with a *semel.Failure, the answer
// is a problem with the code "failed". docs/http.md has the details. Nil arguments
// and wrong options are errors. The handler is safe for concurrent use.
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
		err = errors.Join(errors.New("semelhttp: Optional: is set; Accept needs a key to reserve"), err)
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
	e := &exchange{cfg: a.cfg, w: w, r: r}
	defer e.end()
	call, _, p := a.cfg.newCall(r, a.tenant, &e.spool)
	if p != nil {
		a.cfg.refuse(w, r, p)
		return
	}
	t, err := a.guard.Reserve(r.Context(), call)
	if err != nil {
		var tombstone store.Outcome // set for a result that was not kept
		if t.Result != nil {
			tombstone = t.Result.Outcome
		}
		a.cfg.answerDuplicate(w, r, tombstone, err)
		return
	}
	if t.Result != nil && a.cfg.Authorize != nil {
		if err := a.cfg.Authorize(r); err != nil {
			a.cfg.refuse(w, r, problem(CodeReplayForbidden, err))
			return
		}
	}
	if !t.Fresh {
		w.Header().Set(replayedHeader, "true")
	}
	answer := &acceptWriter{ResponseWriter: w, cfg: a.cfg, ticket: t}
	delete(w.Header(), resultHeader) // only fn may say what its answer means
	defer answer.end()
	a.fn(answer, e.handlerRequest(r.Context()), t)
	answer.begin(http.StatusOK) // the server writes it, as it does for each handler that wrote nothing
}

// acceptWriter is the http.ResponseWriter of fn. It does not send the header Semel-Result.
// It removes the replay header from an answer after which the client has to come again,
// because a client does not repeat a request after a replay.
type acceptWriter struct {
	http.ResponseWriter
	cfg    *config
	ticket semel.Ticket
	begun  bool // the header is as the client gets it
}

// asksAgain reports whether an answer says that fn could not send the token on, or that it
// could not answer with the result.
func (a *acceptWriter) asksAgain(status int) bool {
	switch markOf(a.Header()) {
	case markNoEffect:
		return true
	case markFinal:
		return false
	case unmarked:
	}
	v := Judge(Answer{Status: status, Header: a.Header()})
	if a.ticket.Result == nil {
		return v.Effect != Kept
	}
	return status != a.ticket.Result.Outcome.Code && (v.Again || v.Effect == Doubt)
}

// begin makes the header ready for an answer of this status.
func (a *acceptWriter) begin(status int) {
	if a.begun {
		return
	}
	a.begun = true
	h := a.Header()
	if a.asksAgain(status) {
		delete(h, replayedHeader)
	}
	delete(h, resultHeader)
}

// end removes the marks of fn's answer. If fn panicked before its answer began, an outer
// handler may answer, and that answer is no replay.
func (a *acceptWriter) end() {
	delete(a.Header(), resultHeader)
	if !a.begun {
		delete(a.Header(), replayedHeader)
	}
}

// WriteHeader implements http.ResponseWriter.
func (a *acceptWriter) WriteHeader(status int) {
	if !a.begun && status < 200 && status != http.StatusSwitchingProtocols {
		sendInformational(a.ResponseWriter, status)
		return
	}
	a.begin(status)
	a.ResponseWriter.WriteHeader(status)
}

// Write implements http.ResponseWriter.
func (a *acceptWriter) Write(p []byte) (int, error) {
	a.begin(http.StatusOK)
	return a.ResponseWriter.Write(p)
}

// Flush implements http.Flusher.
func (a *acceptWriter) Flush() { _ = a.FlushError() }

// FlushError is Flush for http.ResponseController.
func (a *acceptWriter) FlushError() error {
	a.begin(http.StatusOK)
	return http.NewResponseController(a.ResponseWriter).Flush()
}

// Unwrap is for http.ResponseController.
func (a *acceptWriter) Unwrap() http.ResponseWriter { return a.ResponseWriter }
