package semelhttp

import (
	"errors"
	"io"
	"net/http"
	"net/url"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/semel-go/semel"
	"github.com/semel-go/semel/driver"
)

// errConsumed means that an outer handler has read the body.
var errConsumed = errors.New("an outer handler has read the request body; put this handler outside of it")

// newCall makes the call of a request. It reads the body into s, which the caller
// closes. Protected is false if the request has no key and may pass. The tenant is
// checked before the body is read, so that an unknown client cannot send one.
func (c *config) newCall(r *http.Request, tenant TenantFunc, s *spool) (call semel.Call, protected bool, p *Problem) {
	key, found, err := findKey(r.Header, c.KeyHeaders, c.Strict)
	switch {
	case err != nil:
		return call, true, keyMalformed(err)
	case !found && c.KeyFrom == nil && c.Optional:
		return call, false, nil
	case !found && c.KeyFrom == nil:
		return call, true, problem(CodeKeyMissing, nil)
	}
	call, p = c.identify(r, tenant)
	if p != nil {
		return call, true, p
	}
	payload, p := c.readPayload(r, s)
	if p != nil {
		return call, true, p
	}
	if !found {
		key, err = c.KeyFrom(r, s.reader())
		switch err = driver.ReadableError(err); {
		case errors.Is(err, semel.ErrUnavailable):
			return call, true, problem(CodeStoreUnavailable, err)
		case err != nil:
			return call, true, problem(CodePayloadMalformed, err)
		case key == "" && c.Optional:
			return call, false, nil
		case key == "":
			return call, true, problem(CodeKeyMissing, nil)
		}
		if err := checkKey(key); err != nil {
			return call, true, keyMalformed(err)
		}
	}
	call.Key, call.Payload, call.Wait = key, payload, c.wait(r.Header)
	return call, true, nil
}

// readPayload spools the body and makes the payload, by Options.Payload or as a
// hash of the request.
func (c *config) readPayload(r *http.Request, s *spool) (semel.Payload, *Problem) {
	if c.Payload == nil {
		sum, p := c.fingerprint(r, s)
		if p != nil {
			return semel.Payload{}, p
		}
		return semel.Digest(fingerprintAlg, sum), nil
	}
	if p := c.spoolBody(r, s, io.Discard); p != nil {
		return semel.Payload{}, p
	}
	payload, err := c.Payload(r, s.reader())
	if err != nil {
		return payload, problem(CodePayloadMalformed, driver.ReadableError(err))
	}
	return payload, nil
}

func (c *config) spoolBody(r *http.Request, s *spool, h io.Writer) *Problem {
	err := s.fill(r.Body, r.ContentLength, c.MaxBody, c.TempDir, h)
	switch {
	case err != nil:
		return c.bodyProblem(err)
	case s.size == 0 && (r.ContentLength > 0 || len(r.PostForm) > 0 || r.MultipartForm != nil):
		return problem(CodeMisconfigured, errConsumed)
	}
	return nil
}

// wait is how long this request may wait: Options.Wait, or less if the client
// prefers that (RFC 7240).
func (c *config) wait(h http.Header) time.Duration {
	if c.Wait == 0 {
		return 0
	}
	for _, line := range h["Prefer"] {
		for part := range strings.SplitSeq(line, ",") {
			preference, _, _ := strings.Cut(part, ";")
			name, value, ok := strings.Cut(preference, "=")
			if !ok || !strings.EqualFold(strings.TrimSpace(name), "wait") {
				continue
			}
			n, err := strconv.ParseUint(strings.Trim(strings.TrimSpace(value), `"`), 10, 31)
			if err == nil {
				return min(c.Wait, time.Duration(n)*time.Second)
			}
		}
	}
	return c.Wait
}

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
// method before it, in capitals; a method that is not in RFC 9110, PATCH, QUERY or one of
// WebDAV (RFC 4918) is OTHER, so that clients cannot make operations without end. Route is empty
// unless an http.ServeMux has matched the request, so wrap the handlers and not the ServeMux.
//
// Behind http.StripPrefix the pattern has no prefix. If two routers have equal patterns below
// different prefixes, their requests share keys: the second request with a key gets 422. If
// equal keys must count as two, let Options.Operation name them.
func Route(r *http.Request) string { return route(r, nil) }

// route is Route, and knows further methods, which are in capitals.
func route(r *http.Request, methods []string) string {
	if r.Pattern == "" || strings.ContainsAny(r.Pattern, " \t") {
		return r.Pattern
	}
	method := strings.ToUpper(r.Method)
	if !slices.Contains(knownMethods, method) && !slices.Contains(methods, method) {
		method = "OTHER"
	}
	return method + " " + r.Pattern
}

// routeWith returns Route for a handler that protects these methods: each of them is an operation
// of its own.
func routeWith(methods []string) func(r *http.Request) string {
	capitals := make([]string, len(methods))
	for i, m := range methods {
		capitals[i] = strings.ToUpper(m)
	}
	return func(r *http.Request) string { return route(r, capitals) }
}

var knownMethods = []string{
	"POST", "PATCH", "PUT", "DELETE", "GET", "HEAD", "OPTIONS", "TRACE", "CONNECT", "QUERY",
	"PROPFIND", "PROPPATCH", "MKCOL", "COPY", "MOVE", "LOCK", "UNLOCK",
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

// cutPrefix returns the start of the path that an outer handler, such as http.StripPrefix, has
// cut off r.URL, and the path that the client sent. If nothing was cut, both are empty.
// The prefix is escaped, and the path is not. A slash at the end of the path does not count.
func cutPrefix(r *http.Request) (prefix, sent string) {
	path := strings.TrimSuffix(r.URL.EscapedPath(), "/")
	target, _, _ := strings.Cut(r.RequestURI, "?")
	if strings.TrimSuffix(target, "/") == path { // as for nearly all requests
		return "", ""
	}
	u, err := url.ParseRequestURI(r.RequestURI) // it may be an absolute URL
	if err != nil {
		return "", ""
	}
	prefix, ok := strings.CutSuffix(strings.TrimSuffix(u.EscapedPath(), "/"), path)
	if !ok || prefix == "" {
		return "", ""
	}
	return prefix, u.Path
}
