package semellambda

import (
	"cmp"
	"context"
	"encoding/base64"
	"fmt"
	"maps"
	"net/http"
	"net/url"
	"slices"
	"strings"

	"github.com/aws/aws-lambda-go/events"
)

// Request is an HTTP request as Lambda gets it.
type Request interface {
	events.APIGatewayProxyRequest | events.APIGatewayV2HTTPRequest | events.ALBTargetGroupRequest | events.LambdaFunctionURLRequest
}

// parts are the parts of an event that make an HTTP request.
type parts struct {
	method, path, query, host, sourceIP string
	sentPath                            string // the path with the stage of the API before it; empty: path is whole
	pattern                             string // the route of the gateway; empty: it has none
	header                              http.Header
	body                                string
	encoded                             bool // the body is base64
}

// newRequest makes an HTTP request of an event, for semelhttp.
func newRequest(ctx context.Context, event any) (*http.Request, error) {
	p := partsOf(event)
	if p.method == "" { // net/http would take it for GET, which is not protected
		return nil, fmt.Errorf("semellambda: Proxy: the event has no HTTP method, so it is no %T; choose the type for the sender and its payload format version, 1.0 or 2.0", event)
	}
	body := p.body
	if p.encoded {
		b, err := base64.StdEncoding.DecodeString(p.body)
		if err != nil {
			return nil, fmt.Errorf("semellambda: Proxy: the body is not base64: %w", err)
		}
		body = string(b)
	}
	r, err := http.NewRequestWithContext(ctx, p.method, "/", strings.NewReader(body))
	if err != nil {
		return nil, fmt.Errorf("semellambda: Proxy: %w", err)
	}
	if p.path == "" {
		p.path = "/"
	}
	r.URL = urlOf(p.path, p.query)
	// semelhttp compares the part of RequestURI that the path does not have.
	r.RequestURI = urlOf(cmp.Or(p.sentPath, p.path), p.query).RequestURI()
	r.Pattern, r.RemoteAddr = p.pattern, p.sourceIP
	r.Header, r.Host = p.header, p.host
	if host := p.header.Get("Host"); host != "" {
		r.Host = host
	}
	r.Header.Del("Host") // as net/http does
	return r, nil
}

// urlOf is a URL without a host. A path that is not escaped stays as it is.
func urlOf(path, query string) *url.URL {
	u := &url.URL{Path: path, RawQuery: query}
	if plain, err := url.PathUnescape(path); err == nil {
		u.Path, u.RawPath = plain, path
	}
	return u
}

// hasRoutes reports whether the sender of an event names a route.
func hasRoutes(event any) bool {
	switch event.(type) {
	case events.APIGatewayProxyRequest, events.APIGatewayV2HTTPRequest:
		return true
	}
	return false
}

func partsOf(event any) parts {
	switch e := event.(type) {
	case events.APIGatewayProxyRequest:
		p := parts{
			method: e.HTTPMethod, path: e.Path, host: e.RequestContext.DomainName, sourceIP: e.RequestContext.Identity.SourceIP,
			header: headerOf(e.Headers, e.MultiValueHeaders), body: e.Body, encoded: e.IsBase64Encoded,
			query: valuesOf(e.QueryStringParameters, e.MultiValueQueryStringParameters).Encode(),
		}
		if e.Path == "/" || strings.HasSuffix(e.RequestContext.Path, e.Path) { // at the domain of the gateway: /prod/pay for /pay, and /prod for /
			p.sentPath = e.RequestContext.Path
		}
		if e.Resource != "" {
			p.pattern = strings.ToUpper(e.HTTPMethod) + " " + e.Resource
		}
		return p
	case events.APIGatewayV2HTTPRequest:
		req := e.RequestContext.HTTP
		p := parts{
			method: req.Method, path: e.RawPath, query: e.RawQueryString, host: e.RequestContext.DomainName, sourceIP: req.SourceIP,
			header: headerOf(e.Headers, nil), body: e.Body, encoded: e.IsBase64Encoded,
		}
		addCookies(p.header, e.Cookies)
		p.pattern = e.RouteKey
		if method, route, ok := strings.Cut(e.RouteKey, " "); ok && method == "ANY" {
			p.pattern = strings.ToUpper(req.Method) + " " + route
		} else if !ok && e.RouteKey != "" { // "$default"
			p.pattern = strings.ToUpper(req.Method) + " " + e.RouteKey
		}
		return p
	case events.ALBTargetGroupRequest:
		return parts{
			method: e.HTTPMethod, path: e.Path, query: rawQuery(valuesOf(e.QueryStringParameters, e.MultiValueQueryStringParameters)),
			header: headerOf(e.Headers, e.MultiValueHeaders), body: e.Body, encoded: e.IsBase64Encoded,
		}
	case events.LambdaFunctionURLRequest:
		req := e.RequestContext.HTTP
		p := parts{
			method: req.Method, path: e.RawPath, query: e.RawQueryString, host: e.RequestContext.DomainName, sourceIP: req.SourceIP,
			header: headerOf(e.Headers, nil), body: e.Body, encoded: e.IsBase64Encoded,
		}
		addCookies(p.header, e.Cookies)
		return p
	}
	panic(fmt.Sprintf("semellambda: no request: %T", event)) // Request has no other type
}

// headerOf joins the two forms of headers. If a gateway sends both, the second has all
// values. A gateway keeps the spellings of the client, so a name can be there twice.
func headerOf(single map[string]string, multi map[string][]string) http.Header {
	h, one := http.Header{}, http.Header{}
	for _, name := range slices.Sorted(maps.Keys(multi)) {
		same := http.CanonicalHeaderKey(name)
		h[same] = append(h[same], multi[name]...)
	}
	for _, name := range slices.Sorted(maps.Keys(single)) {
		one.Add(name, single[name])
	}
	for name, values := range one {
		if len(h[name]) == 0 {
			h[name] = values
		}
	}
	return h
}

func addCookies(h http.Header, cookies []string) {
	if len(cookies) > 0 {
		h.Set("Cookie", strings.Join(cookies, "; "))
	}
}

func valuesOf(single map[string]string, multi map[string][]string) url.Values {
	v := url.Values{}
	for name, value := range single {
		v[name] = []string{value}
	}
	for name, values := range multi {
		if len(values) > 0 {
			v[name] = values
		}
	}
	return v
}

// rawQuery is the query of a load balancer, which does not decode the parameters.
func rawQuery(v url.Values) string {
	decoded := url.Values{}
	for _, name := range slices.Sorted(maps.Keys(v)) { // two spellings of a name always in one order
		plain := unquote(name)
		for _, value := range v[name] {
			decoded[plain] = append(decoded[plain], unquote(value))
		}
	}
	return decoded.Encode()
}

func unquote(s string) string {
	if plain, err := url.QueryUnescape(s); err == nil {
		return plain
	}
	return s
}
