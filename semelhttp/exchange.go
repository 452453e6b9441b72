package semelhttp

import (
	"context"
	"errors"
	"net/http"

	"github.com/semel-go/semel"
)

// exchange is one protected request and its answer.
type exchange struct {
	cfg   *config
	run   semel.Runner
	next  http.Handler
	w     http.ResponseWriter
	r     *http.Request
	spool spool
	leash *leash // nil: the handler's context ends with the client's

	last *handling // nil: the handler has not run
}

// handling is one run of the handler. A Runner that repeats a transaction
// makes more than one.
type handling struct {
	capture  capture
	body     body
	ctx      handlerContext
	request  *http.Request
	returned bool
	streamed bool
}

// handlerContext adds the capture to a context: a context.WithValue that needs
// no allocation of its own.
type handlerContext struct {
	context.Context //nolint:containedctx // it is one
	capture         *capture
}

// Value implements context.Context.
func (c *handlerContext) Value(key any) any {
	if key == (captureKey{}) {
		return c.capture
	}
	return c.Context.Value(key)
}

// serve runs the call, and answers.
func (e *exchange) serve(call semel.Call) {
	ctx := e.r.Context()
	if e.cfg.Detach {
		e.leash, ctx = newLeash(ctx)
		defer e.leash.end()
	}
	res, err := e.run.Run(ctx, call, e.handle)
	switch {
	case e.last == nil:
		e.cfg.duplicate(e.w, e.r, res.Outcome, err)
	case e.last.streamed:
	case res.Replayed: // a transaction was undone, and when it was repeated another had been faster
		e.last.capture.discard()
		e.cfg.duplicate(e.w, e.r, res.Outcome, err)
	default:
		e.answer(err)
	}
}

var errStreamed = errors.New("semelhttp: the handler cannot run again, for its answer was streamed")

// handle is the semel.Handler of the call.
func (e *exchange) handle(ctx context.Context, x *semel.Execution) (semel.Outcome, error) {
	if e.last != nil {
		if e.last.streamed {
			return semel.Outcome{}, errStreamed
		}
		e.last.capture.discard()
	} else if e.leash != nil && !e.leash.release() {
		return semel.Outcome{}, semel.NoEffect(context.Cause(e.r.Context())) // the client left just before
	}
	h := &handling{}
	e.last = h
	h.body.spool = &e.spool
	h.ctx = handlerContext{ctx, &h.capture}
	h.capture.begin(e.cfg, e.w, e.request(&h.ctx, h), x)
	e.next.ServeHTTP(&h.capture, h.request)
	h.streamed, h.returned = h.capture.handlerReturned(), true
	_ = h.body.Close() // never fails
	return h.capture.result(h.streamed)
}

// request is what the handler gets: the spooled body, of known length.
func (e *exchange) request(ctx context.Context, h *handling) *http.Request {
	r := e.r.WithContext(ctx)
	r.Body, r.ContentLength, r.TransferEncoding = http.NoBody, e.spool.size, nil
	if e.spool.size > 0 {
		r.Body = &h.body
	}
	h.request = r
	return r
}

// spooled is the request for those who answer it without a run.
func (e *exchange) spooled() *http.Request {
	e.last = &handling{}
	e.last.body.spool = &e.spool
	return e.request(e.r.Context(), e.last)
}

// answer sends what the handler answered, if it counts.
func (e *exchange) answer(err error) {
	c := &e.last.capture
	if err == nil {
		err = c.err
	}
	marker := ""
	if c.unprotected() {
		marker = outcomeUnprotected
	}
	if err != nil {
		_, own := errors.AsType[answered](err)
		switch {
		case errors.Is(err, semel.ErrLeaseLost) || c.err != nil:
			own = false
		case errors.Is(err, semel.ErrOutcomeNotStored):
			own, marker = true, outcomeNotStored
		case errors.Is(err, semel.ErrParked):
			marker = outcomeUnknown
		}
		if !own {
			c.discard()
			e.cfg.refuse(e.w, e.r, e.cfg.problemOf(err))
			return
		}
	}
	_ = c.send(marker) // a client that has gone will ask again
}

// end frees what the request holds, also if the handler panics.
func (e *exchange) end() {
	if h := e.last; h != nil {
		if !h.returned {
			h.capture.abandon()
			_ = h.body.Close() // never fails
		}
		if h.request != nil && h.request.MultipartForm != nil && e.r.MultipartForm == nil {
			_ = h.request.MultipartForm.RemoveAll() // the server does it for its own request only
		}
	}
	e.spool.close()
}
