// Package semelfiber is the middleware of package semelhttp for Fiber.
//
//	once, err := semelfiber.Middleware(guard, account, nil)
//	app.Post("/payments", once, pay)
//
// The net/http adaptor of Fiber is wrong for it: Fiber turns an error of a handler
// into an answer after all middleware has returned, so Semel would keep an empty 200.
// Here the error becomes the answer within the protected handler.
//
// # Order of middleware
//
// Register recover, authentication and loggers before Middleware. Without recover, a
// panic ends the process, because Fiber's server recovers none. Middleware outside of
// it sees the answer, but not the error of a protected request.
//
// # Configuration of Fiber
//
// Set fiber.Config.DisablePreParseMultipartForm if clients send multipart forms. By default
// Fiber reads a form before any handler and drops its bytes, so that repeats of a form cannot
// be recognised: a protected request with a form gets 500 (misconfigured), and does not run.
//
// With fiber.Config.StreamRequestBody, protected requests need a Content-Length. A request
// in chunks gets 500 (misconfigured), because Fiber's stream does not tell the end of the
// body from a lost connection.
//
// # Refused
//
// A protected request whose URI net/url cannot parse, such as /files/100%, gets 400. A
// protected request cannot be hijacked or switch protocols: it gets 500
// (upgrade_unsupported). Fiber cannot tell an empty 200 from no answer: a handler that
// means it calls semelhttp.Final(semelfiber.Request(c)), or sends 204. A stream is read to
// its end before its first byte is sent, and held in memory; do not protect endless
// streams. A stream that is not as long as it declares counts as broken off: the call is
// in doubt, and the client gets 502. Fiber does not notice that a client has left. If a
// store's Atomic repeats a transaction, Fiber cannot run the chain again: the request gets
// a 503 that is not kept, and its writes are undone.
package semelfiber

import (
	"context"
	"net/http"
	"strings"

	"github.com/gofiber/fiber/v3"

	"github.com/semel-go/semel"
	"github.com/semel-go/semel/semelhttp"
)

// Middleware makes a handler that protects the rest of the chain, as
// semelhttp.Middleware protects an http.Handler. The ErrorHandler of the app answers an
// error of the chain, and the middleware then returns nil. The operation is the method
// and the path of the route or of the Use call, such as "POST /payments/:id", unless
// Options.Operation names it. Within the chain, semel.FromContext(c.Context()) finds
// the execution.
//
// A nil run, a nil tenant and wrong options are errors; nil options are the defaults.
// The handler is safe for concurrent use. A panic goes on to the outer middleware.
func Middleware(run semel.Runner, tenant semelhttp.TenantFunc, o *semelhttp.Options) (fiber.Handler, error) {
	copied := tenant
	if tenant != nil {
		copied = func(r *http.Request) (string, error) {
			if x, ok := r.Context().Value(contextKey{}).(*exchange); ok && x.uriErr != nil {
				x.err = fiber.NewError(http.StatusBadRequest, x.uriErr.Error())
				return "", x.uriErr
			}
			name, err := tenant(r)
			return strings.Clone(name), err // it may be in a buffer that Fiber uses again
		}
	}
	once, err := semelhttp.Middleware(run, copied, o)
	if err != nil {
		return nil, err
	}
	protected := once(http.HandlerFunc(runChain))
	return func(c fiber.Ctx) error {
		x := &exchange{c: c, header: http.Header{}}
		outer := c.Context()
		defer func() { // after a panic, too
			c.SetContext(outer)
			if x.ran {
				c.Response().Header.Del(resultHeader)
			}
		}()
		r := newRequest(context.WithValue(outer, contextKey{}, x), c, x)
		copyHeader(x.header, c)
		protected.ServeHTTP(x, r)
		if !x.unprotected && x.err == nil {
			x.send()
		}
		return x.err
	}, nil
}

// Context returns the Fiber context of a request that a function of Options or a
// TenantFunc gets, or nil if the request does not come from Middleware. Do not use it
// after the request, and copy the strings that it returns.
func Context(r *http.Request) fiber.Ctx {
	if x, ok := r.Context().Value(contextKey{}).(*exchange); ok {
		return x.c
	}
	return nil
}

// Request returns a request for semelhttp.NoEffect and semelhttp.Final. It has the
// context of c and nothing else.
func Request(c fiber.Ctx) *http.Request { return (&http.Request{}).WithContext(c.Context()) }

type contextKey struct{}

// resultHeader is the header by which a protected handler may say what its answer means.
// semelhttp does not send it.
const resultHeader = "Semel-Result"

// runChain is the handler that semelhttp protects.
func runChain(w http.ResponseWriter, r *http.Request) {
	x, _ := r.Context().Value(contextKey{}).(*exchange)
	c := x.c
	if request := c.Request(); request.IsBodyStream() && r.Body != x.body { // semelhttp has read it
		request.SetBodyStream(r.Body, int(r.ContentLength))
	}
	switch {
	case w == http.ResponseWriter(x):
		x.unprotected = true
		x.err = c.Next()
		return
	case x.ran:
		semelhttp.NoEffect(r)
		w.Header().Set("Retry-After", "1")
		http.Error(w, "the transaction was undone; send the same request again", http.StatusServiceUnavailable)
		return
	}
	x.ran = true
	c.Response().Header.Del(resultHeader) // of an outer handler
	c.SetContext(r.Context())
	if err := c.Next(); err != nil {
		if c.App().ErrorHandler(c, err) != nil {
			_ = c.SendStatus(http.StatusInternalServerError) // as Fiber does
		}
	}
	x.answer(w, r)
}
