// Package semelecho is the middleware of package semelhttp for Echo.
//
//	once, err := semelecho.Middleware(guard, account, nil)
//	e.POST("/payments", pay, once)
//
// A plain wrapper of the net/http middleware is wrong under Echo: Echo turns an error
// of a handler into an answer after all middleware has returned, so Semel would keep an
// empty answer. Here the error becomes the answer within the protected handler.
//
// # Order of middleware
//
// Register Recover, authentication and loggers before Middleware. Middleware that is
// outside of it sees the answer, but not the error of a protected request, which is
// already answered.
//
// # Refused
//
// A protected request cannot be hijacked or switch protocols. A stream is sent, but
// its body is not kept; see package semelhttp. A handler that returns nil without an
// answer has not answered; a handler that means an empty 200 calls c.NoContent(200).
//
// # Errors after an answer
//
// A handler may return an error after it has written an answer. c.Stream does, if its reader
// fails, and so does a middleware whose commit fails. If the answer has a status below 400,
// it and the error contradict each other: the call is in doubt, and the error becomes the
// answer, unless a part of the first one was sent already. To keep the answer, return nil and
// log the error. An answer of 400 and above stays as it is, as in Echo itself, and so does one
// for which the handler has said what it means, by semelhttp.Final or semelhttp.NoEffect, and one
// whose body the status does not allow: c.JSON(204, v).
package semelecho

import (
	"context"
	"net/http"

	"github.com/labstack/echo/v5"

	"github.com/semel-go/semel"
	"github.com/semel-go/semel/semelhttp"
)

// Middleware makes an Echo middleware that protects handlers, as semelhttp.Middleware
// protects an http.Handler. Echo's HTTPErrorHandler answers an error of a protected
// handler, and Middleware then returns nil. The operation is the method and the route,
// such as "POST /payments/:id", unless Options.Operation names it; a request without a
// route then gets 500 (misconfigured). Within the handler,
// semel.FromContext(c.Request().Context()) finds the execution.
//
// A nil run, a nil tenant and wrong options are errors; nil options are the defaults.
// The middleware is safe for concurrent use. A panic goes on to the outer middleware.
func Middleware(run semel.Runner, tenant semelhttp.TenantFunc, o *semelhttp.Options) (echo.MiddlewareFunc, error) {
	once, err := semelhttp.Middleware(run, tenant, o)
	if err != nil {
		return nil, err
	}
	protected := once(http.HandlerFunc(runHandler))
	return func(next echo.HandlerFunc) echo.HandlerFunc {
		return func(c *echo.Context) error {
			x := &exchange{ResponseWriter: c.Response(), c: c, next: next}
			request := c.Request()
			defer func() { // after a panic, too
				c.SetRequest(request)
				c.SetResponse(x.ResponseWriter)
			}()
			r := request.WithContext(context.WithValue(request.Context(), contextKey{}, x))
			r.Pattern = c.Path()
			for _, p := range c.PathValues() {
				r.SetPathValue(p.Name, p.Value)
			}
			protected.ServeHTTP(x, r)
			return x.err
		}
	}, nil
}

// Context returns the Echo context of a request that a function of Options or a
// TenantFunc gets, or nil if the request does not come from Middleware. Do not use it
// after the request.
func Context(r *http.Request) *echo.Context {
	if x, ok := r.Context().Value(contextKey{}).(*exchange); ok {
		return x.c
	}
	return nil
}

type contextKey struct{}

// exchange is one request. It is the server's http.ResponseWriter for semelhttp.
type exchange struct {
	http.ResponseWriter // of the outer middleware
	c                   *echo.Context
	next                echo.HandlerFunc
	err                 error // of a request that is not protected
}

// Unwrap is for http.ResponseController.
func (x *exchange) Unwrap() http.ResponseWriter { return x.ResponseWriter }

// runHandler is the handler that semelhttp protects.
func runHandler(w http.ResponseWriter, r *http.Request) {
	x, _ := r.Context().Value(contextKey{}).(*exchange)
	x.c.SetRequest(r)
	if w == http.ResponseWriter(x) { // not protected
		x.err = x.next(x.c)
		return
	}
	response := echo.NewResponse(w, x.c.Logger())
	x.c.SetResponse(response)
	err := x.next(x.c)
	if err == nil {
		return
	}
	bodyless := err == http.ErrBodyNotAllowed //nolint:errorlint // an error that joins it with another one is more
	if response.Committed && response.Status < http.StatusBadRequest && !bodyless && !semelhttp.Marked(r) && semelhttp.Broken(r) {
		x.c.SetResponse(echo.NewResponse(w, x.c.Logger())) // the first answer is dropped
	}
	x.c.Echo().HTTPErrorHandler(x.c, err)
}
