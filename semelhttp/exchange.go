package semelhttp

import (
	"context"
	"errors"
	"net/http"

	"github.com/semel-go/semel"
	"github.com/semel-go/semel/store"
)

// exchange is one protected request and its answer.
type exchange struct {
	cfg    *config
	runner semel.Runner
	next   http.Handler
	w      http.ResponseWriter
	r      *http.Request
	spool  spool
	client *clientContext // set with Options.Detach

	// The last run of the handler. A Runner that repeats a transaction makes
	// several runs.
	response *response // nil: the handler has not run
	writer   *handlerWriter
	request  *http.Request
	body     *requestBody // nil: the request has no body
	streamed bool
}

// serve runs the call and answers the request.
func (e *exchange) serve(call semel.Call) {
	delete(e.w.Header(), resultHeader) // only the protected handler may say what its answer means
	ctx := e.r.Context()
	if e.cfg.Detach {
		e.client, ctx = newClientContext(ctx)
		defer e.client.end()
	}
	res, err := e.runner.Run(ctx, call, e.handle)
	switch {
	case e.response == nil:
		e.cfg.answerDuplicate(e.w, e.r, res.Outcome, err)
	case e.streamed:
	case res.Replayed: // this transaction was undone, and another one committed before it was repeated
		e.response.discard()
		e.cfg.answerDuplicate(e.w, e.r, res.Outcome, err)
	default:
		e.answer(err)
	}
}

var errStreamed = errors.New("semelhttp: the handler cannot run again, because its answer was streamed")

// handle is the semel.Handler of the call.
func (e *exchange) handle(ctx context.Context, x *semel.Execution) (store.Outcome, error) {
	if e.response != nil {
		if e.streamed {
			return store.Outcome{}, errStreamed
		}
		e.response.discard()
		e.removeForm()
	}
	connected := true
	if firstRun := e.response == nil; firstRun && e.client != nil {
		connected = e.client.detach()
	}
	if !connected || ctx.Err() != nil {
		// The client left just before. It gets the same error as if it had left earlier.
		e.response = nil
		return store.Outcome{}, semel.NoEffect(&semel.Error{Reason: semel.ErrUnavailable, Operation: x.Operation(), Cause: context.Cause(e.r.Context())})
	}
	a := newResponse(e.cfg, e.w, x)
	w := &handlerWriter{server: e.w, response: a}
	e.response, e.writer = a, w
	a.request = e.handlerRequest(withWriter(ctx, w))
	e.next.ServeHTTP(w, a.request)
	e.closeRun()
	e.streamed = a.finish()
	return a.result()
}

// handlerRequest is the request for a run of the handler: its body is the spooled one, of
// known length. Header and URL are copies, because a handler may change them, and a Runner
// that repeats a transaction runs the handler again with the request as the client sent it.
func (e *exchange) handlerRequest(ctx context.Context) *http.Request {
	r := e.r.Clone(ctx)
	r.Body, r.ContentLength, r.TransferEncoding = http.NoBody, e.spool.size, nil
	e.request, e.body = r, nil
	if e.spool.size > 0 {
		e.body = &requestBody{reader: e.spool.reader()}
		r.Body = e.body
	}
	return r
}

// answer sends the handler's answer if it counts, or a problem if it does not.
func (e *exchange) answer(err error) {
	a := e.response
	if err == nil {
		err = a.err
	}
	marker := ""
	if a.unprotected() {
		marker = outcomeUnprotected
	}
	if err != nil {
		_, ownAnswer := errors.AsType[statusError](err)
		switch {
		case errors.Is(err, semel.ErrLeaseLost) || a.err != nil:
			ownAnswer = false
		case errors.Is(err, semel.ErrOutcomeNotStored):
			ownAnswer, marker = true, outcomeNotStored
		case errors.Is(err, semel.ErrParked):
			marker = outcomeUnknown
		}
		if !ownAnswer {
			a.discard()
			e.cfg.refuse(e.w, e.r, e.cfg.problemOf(err))
			return
		}
	}
	if a.status == 0 { // the handler wrote nothing
		a.discard()
		if marker != "" {
			e.w.Header().Set(outcomeHeader, marker)
		}
		p := silenceProblem(a.ended, err)
		e.cfg.logSilence(e.r, a.ended, p.Status)
		e.cfg.refuse(e.w, e.r, p)
		return
	}
	_ = a.send(marker) // a client that has left will ask again
}

// closeRun ends the handler's access to the response and to the body.
func (e *exchange) closeRun() {
	if e.writer != nil {
		e.writer.close()
	}
	if e.body != nil {
		_ = e.body.Close() // it only refuses further reads
	}
}

// end frees the files of the request. It is called after a panic, too. An outer handler
// that then writes an answer does not send what the handler has said about its own.
func (e *exchange) end() {
	e.closeRun()
	if e.response != nil {
		delete(e.w.Header(), resultHeader)
	}
	e.removeForm()
	e.spool.close()
}

// removeForm removes the files of a form that the handler has parsed. The server
// does this for its own request only.
func (e *exchange) removeForm() {
	if r := e.request; r != nil && r.MultipartForm != nil && e.r.MultipartForm == nil {
		_ = r.MultipartForm.RemoveAll() // the operating system cleans its directory for temporary files
	}
}

// clientContext is a context that ends with the client's context until detach: a
// detached handler goes on without its client, a waiting duplicate does not.
type clientContext struct {
	cancel context.CancelCauseFunc
	stop   func() bool
}

func newClientContext(client context.Context) (*clientContext, context.Context) {
	ctx, cancel := context.WithCancelCause(context.WithoutCancel(client))
	stop := context.AfterFunc(client, func() { cancel(context.Cause(client)) })
	return &clientContext{cancel, stop}, ctx
}

// detach reports whether the client was still connected.
func (c *clientContext) detach() (connected bool) { return c.stop() }

func (c *clientContext) end() {
	c.stop()
	c.cancel(nil)
}
