// Package semelgin is the middleware of package semelhttp for Gin.
//
//	once, err := semelgin.Middleware(guard, account, nil)
//	engine.POST("/payments", once, pay)
//
// A plain wrapper of the net/http middleware is wrong under Gin: Gin sends a status
// without a body only after all middleware has returned, so Semel would not see it.
//
// # Order of middleware
//
// Register before Middleware: gin.Recovery, authentication, loggers. Register after
// it each middleware that writes the answer for errors of c.Error. Otherwise Semel
// has already answered 500 (answer_missing) when that middleware writes.
//
// # Refused
//
// A protected request cannot be hijacked or switch protocols. A stream is sent, but
// its body is not kept; see package semelhttp. A handler that returns without a
// status and without a body has not answered; a handler that means an empty 200 calls
// c.Status(200). If a store's Atomic repeats a transaction, Gin cannot run the chain
// again: the request gets a 503 that is not kept, and its writes are undone.
//
// If the reader of c.DataFromReader or a template of c.HTML fails, or another renderer, such
// as c.JSON, before its first byte, the answer is not whole: the call is in doubt. If nothing
// was sent yet, the client gets 502 instead. A renderer has failed if the chain is aborted
// with a new error in c.Errors, and the answer has a status, a Content-Type and no body. Without
// a body an answer counts if the chain has said what it means, by semelhttp.Final or
// semelhttp.NoEffect. Other errors in c.Errors do not change the meaning of an answer.
package semelgin

import (
	"context"
	"errors"
	"net/http"
	"slices"
	"text/template"

	"github.com/gin-gonic/gin"

	"github.com/semel-go/semel"
	"github.com/semel-go/semel/semelhttp"
)

// Middleware makes a handler that protects the rest of the chain, as
// semelhttp.Middleware protects an http.Handler. A replay and a refusal abort the
// chain. The operation is the method and the route, such as "POST /payments/:id", unless
// Options.Operation names it; a request without a route then gets 500 (misconfigured).
// Within the chain, semel.FromContext(c.Request.Context()) finds the execution.
//
// A nil run, a nil tenant and wrong options are errors; nil options are the defaults.
// The handler is safe for concurrent use. A panic goes on to the outer middleware.
func Middleware(run semel.Runner, tenant semelhttp.TenantFunc, o *semelhttp.Options) (gin.HandlerFunc, error) {
	once, err := semelhttp.Middleware(run, tenant, o)
	if err != nil {
		return nil, err
	}
	protected := once(http.HandlerFunc(runChain))
	return func(c *gin.Context) {
		x := &exchange{ResponseWriter: c.Writer, c: c}
		request := c.Request
		defer func() { c.Writer, c.Request = x.ResponseWriter, request }() // after a panic, too
		r := request.WithContext(context.WithValue(request.Context(), contextKey{}, x))
		r.Pattern = c.FullPath()
		for _, p := range c.Params {
			r.SetPathValue(p.Key, p.Value)
		}
		protected.ServeHTTP(x, r)
		switch {
		case x.unprotected:
			return
		case !x.ran:
			c.Abort()
		}
		x.WriteHeaderNow() // Gin sends a status without a body later
	}, nil
}

// Context returns the Gin context of a request that a function of Options or a
// TenantFunc gets, or nil if the request does not come from Middleware. Do not use it
// after the request.
func Context(r *http.Request) *gin.Context {
	if x, ok := r.Context().Value(contextKey{}).(*exchange); ok {
		return x.c
	}
	return nil
}

type contextKey struct{}

// exchange is one request. It is the server's http.ResponseWriter for semelhttp.
type exchange struct {
	gin.ResponseWriter // of the outer middleware
	c                  *gin.Context
	ran                bool
	unprotected        bool
}

// Unwrap is for http.ResponseController.
func (x *exchange) Unwrap() http.ResponseWriter { return x.ResponseWriter }

// runChain is the handler that semelhttp protects.
func runChain(w http.ResponseWriter, r *http.Request) {
	x, _ := r.Context().Value(contextKey{}).(*exchange)
	switch {
	case w == http.ResponseWriter(x):
		x.unprotected = true
		x.c.Request = r
		x.c.Next()
		return
	case x.ran:
		semelhttp.NoEffect(r)
		w.Header().Set("Retry-After", "1")
		http.Error(w, "the transaction was undone; send the same request again", http.StatusServiceUnavailable)
		return
	}
	x.ran = true
	inner := newWriter(x.ResponseWriter, w)
	x.c.Writer, x.c.Request = inner, r
	before := len(x.c.Errors)
	x.c.Next()
	noted := x.c.Errors[min(before, len(x.c.Errors)):]
	failed := x.c.IsAborted() && len(noted) > 0 && (inner.lacksBody() && !semelhttp.Marked(r) || hasTemplateError(noted)) // Gin aborts if a renderer fails
	switch {
	case !inner.broken && !failed:
		inner.finish()
	case semelhttp.Broken(r):
		http.Error(w, "the answer broke off", http.StatusBadGateway)
	}
}

// hasTemplateError reports whether Gin has noted that a template broke off.
func hasTemplateError(noted []*gin.Error) bool {
	return slices.ContainsFunc(noted, func(e *gin.Error) bool {
		_, ok := errors.AsType[template.ExecError](e)
		return ok
	})
}
