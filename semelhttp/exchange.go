package semelhttp

import (
	"context"
	"errors"
	"net/http"
	"sync"

	"github.com/semel-go/semel"
	"github.com/semel-go/semel/store"
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

	// Of the last run of the handler. A Runner that repeats a transaction makes
	// more than one.
	loan     *loan // nil: there was none
	request  *http.Request
	capture  capture
	returned bool
	streamed bool
}

// exchanges are used again: memory that was just used is near, and new memory
// is not. Nobody who outlives the request has one; see loan.
var exchanges = sync.Pool{New: func() any { return &exchange{} }}

func newExchange(c *config, w http.ResponseWriter, r *http.Request) *exchange {
	e := exchanges.Get().(*exchange)
	e.cfg, e.w, e.r = c, w, r
	return e
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
	case e.loan == nil:
		e.cfg.duplicate(e.w, e.r, res.Outcome, err)
	case e.streamed:
	case res.Replayed: // a transaction was undone, and when it was repeated another had been faster
		e.capture.discard()
		e.cfg.duplicate(e.w, e.r, res.Outcome, err)
	default:
		e.answer(err)
	}
}

var errStreamed = errors.New("semelhttp: the handler cannot run again, for its answer was streamed")

// handle is the semel.Handler of the call.
func (e *exchange) handle(ctx context.Context, x *semel.Execution) (store.Outcome, error) {
	if e.loan != nil {
		if e.streamed {
			return store.Outcome{}, errStreamed
		}
		e.capture.discard()
		e.capture = capture{}
		e.removeForm()
	} else if e.leash != nil && !e.leash.release() {
		// The client left just before. It is told what it is told if it left a bit earlier.
		return store.Outcome{}, semel.NoEffect(&semel.Error{Reason: semel.ErrCanceled, Operation: x.Operation(), Cause: context.Cause(e.r.Context())})
	}
	l := &loan{}
	e.loan, e.returned = l, false
	l.ctx = loanContext{ctx, l}
	e.capture.begin(e.cfg, e.w, l, x)
	e.capture.r = e.lend(&l.ctx)
	e.next.ServeHTTP(l, e.request)
	e.streamed, e.returned = e.capture.handlerReturned(), true
	return e.capture.result(e.streamed)
}

// lend is what the handler gets: the request with the spooled body, of known
// length.
func (e *exchange) lend(ctx context.Context) *http.Request {
	r := e.r.WithContext(ctx)
	r.Body, r.ContentLength, r.TransferEncoding = http.NoBody, e.spool.size, nil
	if e.spool.size > 0 {
		e.loan.body.spool = &e.spool
		r.Body = &e.loan.body
	}
	e.request = r
	return r
}

// spooled is the request for those who answer it without a run.
func (e *exchange) spooled() *http.Request {
	e.loan = &loan{}
	return e.lend(e.r.Context())
}

// answer sends what the handler answered, if it counts.
func (e *exchange) answer(err error) {
	c := &e.capture
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
	if e.loan != nil && !e.returned {
		e.loan.over()
	}
	e.removeForm()
	e.spool.close()
	if e.loan == nil || e.returned { // else a Runner may have left a handler that runs
		room := e.spool.again()
		*e = exchange{spool: spool{mem: room}}
		exchanges.Put(e)
	}
}

// removeForm removes the files of a form that the handler has read. The server
// does it for its own request only.
func (e *exchange) removeForm() {
	if r := e.request; r != nil && r.MultipartForm != nil && e.r.MultipartForm == nil {
		_ = r.MultipartForm.RemoveAll() // in the directory for temporary files, which somebody cleans
	}
}
