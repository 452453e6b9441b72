package semelhttp

import (
	"errors"
	"net/http"
	"slices"

	"github.com/semel-go/semel"
)

// Middleware protects handlers: of the requests with one key, of one tenant,
// one runs the handler, and the others get its answer. The runner is a
// *semel.Guard or a store's Atomic. In the handler, semel.FromContext finds
// the run. Nil tenant, nil run and wrong options are errors. What it returns
// is safe for concurrent use.
//
// Put it behind authentication and authorisation, so that a replay needs the
// same rights as a run, but behind nothing that reads the body.
func Middleware(run semel.Runner, tenant TenantFunc, o *Options) (func(http.Handler) http.Handler, error) {
	c, err := o.config()
	if run == nil {
		err = errors.Join(errors.New("semelhttp: run: is nil; it must be a Guard or another semel.Runner"), err)
	}
	if tenant == nil {
		err = errors.Join(errNilTenant, err)
	}
	if err != nil {
		return nil, err
	}
	return func(next http.Handler) http.Handler {
		return &door{cfg: c, run: run, tenant: tenant, next: next}
	}, nil
}

// door is a protected handler.
type door struct {
	cfg    *config
	run    semel.Runner
	tenant TenantFunc
	next   http.Handler
}

// ServeHTTP implements http.Handler.
func (d *door) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	if !slices.Contains(d.cfg.Methods, r.Method) {
		d.next.ServeHTTP(w, r)
		return
	}
	e := newExchange(d.cfg, w, r)
	e.run, e.next = d.run, d.next
	defer e.end()
	call, protected, p := d.cfg.intake(r, d.tenant, &e.spool)
	switch {
	case p != nil:
		d.cfg.refuse(w, r, p)
	case !protected && e.spool.size == 0:
		d.next.ServeHTTP(w, r)
	case !protected:
		d.next.ServeHTTP(w, e.spooled())
	default:
		e.serve(call)
	}
}
