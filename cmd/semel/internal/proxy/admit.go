package proxy

import (
	"errors"
	"fmt"
	"net/http"
	"net/netip"
	"net/textproto"
	"slices"
	"strconv"
	"strings"

	"github.com/semel-go/semel"
	"github.com/semel-go/semel/cmd/semel/internal/config"
	"github.com/semel-go/semel/cmd/semel/internal/input"
	"github.com/semel-go/semel/cmd/semel/internal/limit"
	"github.com/semel-go/semel/cmd/semel/internal/metrics"
	"github.com/semel-go/semel/cmd/semel/internal/problem"
	"github.com/semel-go/semel/cmd/semel/internal/scope"
	"github.com/semel-go/semel/cmd/semel/internal/upstream"
	"github.com/semel-go/semel/internal/httpname"
	"github.com/semel-go/semel/semelhttp"
)

// peers are the addresses that may connect. Nil: all.
type peers struct {
	networks []netip.Prefix
	socket   bool
}

func newPeers(c *config.Connections) *peers {
	if c.Gateways == nil {
		return nil
	}
	return &peers{c.Gateways, c.SocketPeer}
}

// allow reports whether a request comes from a trusted peer.
func (p *peers) allow(r *http.Request) bool {
	if p == nil {
		return true
	}
	from, err := netip.ParseAddrPort(r.RemoteAddr)
	if err != nil {
		return p.socket // the peers of a Unix socket have no address
	}
	addr := from.Addr().Unmap().WithZone("")
	return slices.ContainsFunc(p.networks, func(n netip.Prefix) bool { return n.Contains(addr) })
}

// CheckHeaders returns an error for each option that names a header with which each request
// would be refused, because its name looks like another one that is protected.
func CheckHeaders(c *config.Config, rule scope.Rule) error {
	protected := protectedNames(c.KeyHeaders, rule.Headers(), c.Protected)
	var errs []error
	check := func(option string, names []string) {
		for _, name := range httpname.Canonical(names) {
			plain := hyphened(name)
			if plain != name && (protected[plain] || strings.HasPrefix(plain, upstream.OwnPrefix)) {
				errs = append(errs, &input.Error{Field: c.Where(option), Value: name, Want: fmt.Sprintf("each request that has this header would be refused, because many services take it for %q, which is protected, too; use one of the names", plain)})
			}
		}
	}
	check("scope", rule.Headers())
	check("key-headers", c.KeyHeaders)
	check("protected-headers", c.Protected)
	return errors.Join(errs...)
}

// reserved reports whether a client uses a key that only the proxy makes. A quoted
// key cannot hide the prefix, because it has no escape for a letter.
func (d *router) reserved(h http.Header) bool {
	for _, name := range d.keyHeaders {
		for _, value := range h[name] {
			value = strings.TrimPrefix(strings.Trim(value, " \t"), `"`)
			if strings.HasPrefix(value, derivedPrefix) {
				return true
			}
		}
	}
	return false
}

// ignoreUpgrade removes the offer to switch to a protocol that is not allowed. HTTP
// lets a server ignore such an offer. Java's client offers h2c with each request.
func (d *router) ignoreUpgrade(h http.Header) {
	offers := h["Upgrade"]
	if len(offers) == 0 && len(h["Http2-Settings"]) == 0 {
		return
	}
	if len(offers) == 1 && slices.Contains(d.upgrades, strings.ToLower(offers[0])) {
		return
	}
	delete(h, "Upgrade")
	delete(h, "Http2-Settings")
	var tokens []string
	for _, line := range h["Connection"] {
		for token := range strings.SplitSeq(line, ",") {
			token = textproto.TrimString(token)
			if token != "" && !strings.EqualFold(token, "Upgrade") && !strings.EqualFold(token, "HTTP2-Settings") {
				tokens = append(tokens, token)
			}
		}
	}
	if delete(h, "Connection"); len(tokens) > 0 {
		h["Connection"] = []string{strings.Join(tokens, ", ")}
	}
}

// errNotAsked says that a limit refuses a replay before the authorize hook was asked. The
// refusal must not tell what the hook guards: that the operation is done.
var errNotAsked = errors.New("the replays in memory have their share of the limit, so the authorize hook is not asked")

// limited returns the refusal of a request that a limit refuses.
func limited(err error) (semelhttp.Problem, bool) {
	e, ok := errors.AsType[*limit.Error](err)
	if !ok {
		return semelhttp.Problem{}, false
	}
	p := problem.Overloaded
	switch {
	case errors.Is(err, errNotAsked):
		p = problem.AuthorizerUnavailable
	case e.Kind.Tenant():
		p = problem.TenantLimit
	}
	p.RetryAfter, p.Err = e.After, err
	return p, true
}

// countWithoutKey counts the requests that reach the upstream without a key although
// their method is protected, and logs the first.
func (p *Proxy) countWithoutKey(next http.Handler, to *route, counts *metrics.Calls) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, q *http.Request) {
		if _, keyed := semel.FromContext(q.Context()); !keyed && to.protects(q) {
			if counts.Unkeyed() {
				p.events.Warn("a request without a key passes unprotected; the metric semel_unkeyed_requests_total counts further ones; --require-key refuses them",
					"method", input.Method(q), "path", input.Path(q.URL), "rule", to.rule.Match)
			}
		}
		next.ServeHTTP(w, q)
	})
}

// countAnswer counts the bytes that a request with a key sends to its tenant: the first
// answer, a replay or a refusal. It refuses a large replay if too many are in memory.
func (p *Proxy) countAnswer(next http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		v := limit.FromContext(r.Context())
		if v == nil {
			next.ServeHTTP(w, r)
			return
		}
		c := &countingWriter{ResponseWriter: w, proxy: p, request: r, visit: v}
		defer func() { v.Keep(c.written) }() // also if the answer is broken off
		next.ServeHTTP(c, r)
	})
}

// countingWriter counts the bytes of an answer.
type countingWriter struct {
	http.ResponseWriter
	proxy   *Proxy
	request *http.Request
	visit   *limit.Visit
	written int64
	refused bool // the rest is the replay that was refused
}

// WriteHeader implements http.ResponseWriter.
func (c *countingWriter) WriteHeader(status int) {
	if h := c.Header(); c.visit.Replayed.Load() && len(h["Content-Length"]) == 1 {
		n, _ := strconv.ParseInt(h["Content-Length"][0], 10, 64) // package semelhttp has set it
		if err := c.visit.Hold(n); err != nil {
			c.refuse(n, err)
			return
		}
	}
	c.ResponseWriter.WriteHeader(status)
}

// refuse refuses a replay of n bytes, without the pause of other refusals, in which it would
// stay in memory. The bytes count, because the store has read them.
func (c *countingWriter) refuse(n int64, err error) {
	c.refused, c.written = true, n
	c.proxy.warnOfLimit(c.request, err)
	clear(c.Header())
	semelhttp.AllowOrigin(c.ResponseWriter, c.request, c.proxy.Config.RefusalOrigins)
	why := problem.ReplaysFull
	why.Err = err
	problem.Write(c.ResponseWriter, why)
}

// Write implements http.ResponseWriter.
func (c *countingWriter) Write(p []byte) (int, error) {
	if c.refused {
		return len(p), nil
	}
	c.written += int64(len(p))
	return c.ResponseWriter.Write(p)
}

// Unwrap lets http.ResponseController reach the writer.
func (c *countingWriter) Unwrap() http.ResponseWriter { return c.ResponseWriter }
