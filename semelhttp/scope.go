package semelhttp

import (
	"errors"
	"fmt"
	"net/http"
	"strings"

	"github.com/semel-go/semel"
)

// ScopeFunc says whose a request's key is and what for, such as
// Route(r).For(account). It is called after authentication, and must name who
// was authenticated, never what the client says. It must not read the body.
//
// An error, or an empty tenant, refuses the request with 401; an error that
// wraps semel.ErrUnavailable with 503. Any other scope that no call can have,
// such as the zero Scope, is the server's fault: 500.
type ScopeFunc func(r *http.Request) (semel.Scope, error)

// Route names the operation after the pattern that matched the request, such
// as "POST /payments/{id}"; the method is added to a pattern without one. It
// is empty, which makes an invalid scope, unless a http.ServeMux has matched
// the request already: so wrap the handlers, not the ServeMux.
func Route(r *http.Request) semel.Operation {
	if r.Pattern == "" || strings.ContainsAny(r.Pattern, " \t") {
		return semel.Operation(r.Pattern)
	}
	return semel.Operation(r.Method + " " + r.Pattern)
}

var (
	errNoTenant    = errors.New("the scope has no tenant")
	errNoOperation = errors.New("the scope has no operation; Route is empty unless a http.ServeMux has matched the request")
)

// resolve calls f and tells the caller's faults from the server's.
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

var errNilScope = fmt.Errorf("semelhttp: scope: is nil; say whose keys these are, by Route(r).For(tenant) or Route(r).Shared()")
