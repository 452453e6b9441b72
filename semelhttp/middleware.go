package semelhttp

import (
	"errors"
	"net/http"
	"slices"
	"strings"

	"github.com/semel-go/semel"
	"github.com/semel-go/semel/internal/httpname"
)

// Middleware makes a function that protects handlers. Of all requests with one key
// of one tenant, one runs the handler, and the others get its answer. The runner is
// a *semel.Guard or a store's Atomic. Inside the handler, semel.FromContext finds
// the execution. A nil run, a nil tenant and wrong options are errors. The returned
// function and its handlers are safe for concurrent use.
//
// Authenticate and authorize a request before it reaches the protected handler, so
// that a replay needs the same rights as a run. No outer handler may read the body.
func Middleware(run semel.Runner, tenant TenantFunc, o *Options) (func(http.Handler) http.Handler, error) {
	c, err := o.config()
	if run == nil {
		err = errors.Join(errors.New("semelhttp: run: is nil; pass a *semel.Guard or a store's Atomic"), err)
	}
	if tenant == nil {
		err = errors.Join(errNilTenant, err)
	}
	if err != nil {
		return nil, err
	}
	return func(next http.Handler) http.Handler {
		return &protectedHandler{cfg: c, runner: run, tenant: tenant, next: next}
	}, nil
}

type protectedHandler struct {
	cfg    *config
	runner semel.Runner
	tenant TenantFunc
	next   http.Handler
}

// protects reports whether the method of a request is protected, in any spelling in
// which the handler may read it.
func (c *config) protects(r *http.Request) bool {
	has := func(method string) bool {
		return slices.ContainsFunc(c.Methods, func(m string) bool { return strings.EqualFold(m, method) })
	}
	return has(r.Method) || slices.ContainsFunc(httpname.Overrides(r.Header), has)
}

// ServeHTTP implements http.Handler.
func (h *protectedHandler) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	if !h.cfg.protects(r) {
		h.next.ServeHTTP(w, r)
		return
	}
	e := &exchange{cfg: h.cfg, runner: h.runner, next: h.next, w: w, r: r}
	defer e.end()
	call, protected, p := h.cfg.newCall(r, h.tenant, &e.spool)
	switch {
	case p != nil:
		h.cfg.refuse(w, r, p)
	case !protected && e.spool.size == 0:
		h.next.ServeHTTP(w, r)
	case !protected:
		h.next.ServeHTTP(w, e.handlerRequest(r.Context()))
	default:
		e.serve(call)
	}
}
