package semelhttp

import (
	"errors"
	"net/http"
	"strings"

	"github.com/semel-go/semel"
	"github.com/semel-go/semel/driver"
)

// TenantFunc names the account or user that the key of a request belongs to, or
// returns semel.Shared. It is called after authentication, and must return the
// name of the authenticated account, never a name that the client can choose. It
// must not read the body.
//
// An error, or an empty tenant, refuses the request with 401; an error that wraps
// semel.ErrUnavailable, with 503. Any other tenant that no call can have is the
// server's fault: 500.
type TenantFunc func(r *http.Request) (string, error)

// Route names the operation after the pattern that matched the request, such as
// "POST /payments/{id}". If the pattern has no method, Route puts the request's
// method before it. Route is empty unless an http.ServeMux has matched the request,
// so wrap the handlers and not the ServeMux.
func Route(r *http.Request) string {
	if r.Pattern == "" || strings.ContainsAny(r.Pattern, " \t") {
		return r.Pattern
	}
	return r.Method + " " + r.Pattern
}

var (
	errNilTenant   = errors.New("semelhttp: tenant: is nil; return the name of the authenticated account, or semel.Shared")
	errNoTenant    = errors.New("the request has no tenant")
	errNoOperation = errors.New("the request has no operation; Route is empty unless an http.ServeMux has matched the request")
)

// identify finds operation and tenant of a request. It tells the client's faults
// from the server's.
func (c *config) identify(r *http.Request, tenant TenantFunc) (call semel.Call, p *Problem) {
	name, err := tenant(r)
	switch {
	case errors.Is(err, semel.ErrUnavailable):
		return call, problem(CodeStoreUnavailable, err)
	case err != nil:
		return call, problem(CodeTenantMissing, err)
	}
	call.Operation, call.Tenant = c.Operation(r), name
	switch {
	case call.Operation == "":
		return call, problem(CodeMisconfigured, errNoOperation)
	case name == "":
		return call, problem(CodeTenantMissing, errNoTenant)
	}
	if err := errors.Join(driver.CheckOperation(call.Operation), driver.CheckTenant(name)); err != nil {
		return call, problem(CodeMisconfigured, err)
	}
	return call, nil
}
