package semelhttp

import (
	"errors"
	"net/http"
	"strings"

	"github.com/semel-go/semel"
)

// ScopeFunc returns the scope of a request: its operation and its tenant, such as
// Route(r).For(account). It is called after authentication. The tenant must be the
// authenticated account, never a name that the client only claims. ScopeFunc must
// not read the body.
//
// An error, or an empty tenant, refuses the request with 401, and an error that
// wraps semel.ErrUnavailable with 503. Any other invalid scope, such as the zero
// Scope, is the server's fault: 500.
type ScopeFunc func(r *http.Request) (semel.Scope, error)

// Route names the operation after the pattern that matched the request, such as
// "POST /payments/{id}". If the pattern has no method, Route adds the request's.
// Before a http.ServeMux has matched the request, Route is empty, which makes an
// invalid scope: so wrap the handlers, not the ServeMux.
func Route(r *http.Request) semel.Operation {
	if r.Pattern == "" || strings.ContainsAny(r.Pattern, " \t") {
		return semel.Operation(r.Pattern)
	}
	return semel.Operation(r.Method + " " + r.Pattern)
}

var (
	errNoTenant    = errors.New("the scope has no tenant")
	errNoOperation = errors.New("the scope has no operation; Route is empty before a http.ServeMux has matched the request")
)

// resolve calls f. The problem says whether the client or the server is at fault.
func (f ScopeFunc) resolve(r *http.Request) (semel.Scope, *Problem) {
	s, err := f(r)
	switch {
	case errors.Is(err, semel.ErrUnavailable):
		return s, problem(CodeStoreUnavailable, err)
	case err != nil:
		return s, problem(CodeScopeMissing, err)
	case s.Operation() == "":
		return s, problem(CodeMisconfigured, errNoOperation)
	case s.Tenant() == "" && s != s.Operation().Shared():
		return s, problem(CodeScopeMissing, errNoTenant)
	}
	if err := s.Check(); err != nil {
		return s, problem(CodeMisconfigured, err)
	}
	return s, nil
}

var errNilScope = errors.New("semelhttp: scope: is nil; pass a function that returns the tenant's scope, such as Route(r).For(tenant) or Route(r).Shared()")
