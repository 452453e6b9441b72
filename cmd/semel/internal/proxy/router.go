package proxy

import (
	"net"
	"net/http"
	"net/textproto"
	"net/url"
	"slices"
	"strings"
	"time"

	"github.com/semel-go/semel/cmd/semel/internal/config"
	"github.com/semel-go/semel/cmd/semel/internal/limit"
	"github.com/semel-go/semel/cmd/semel/internal/problem"
	"github.com/semel-go/semel/cmd/semel/internal/scope"
	"github.com/semel-go/semel/internal/httpname"
	"github.com/semel-go/semel/semelhttp"
)

// router checks each request and finds its route.
type router struct {
	// protected are the headers that decide the tenant or the key, or that many
	// upstreams rely on. They must reach the upstream unchanged.
	protected map[string]bool
	// lookalikes are the protected names that have an underscore, with hyphens instead.
	lookalikes map[string]bool
	keyHeaders []string
	scope      scope.Rule
	maxBody    int64          // the largest body in which a key is looked for, in bytes
	rules      *http.ServeMux // nil: no rules
	subtrees   *http.ServeMux // the rules for all paths below a path
	rest       *route

	bodyTimeout  time.Duration // see setBodyDeadline
	writeTimeout time.Duration // see limitWrites
	limits       *limit.Limiter
	warnOfLimit  func(r *http.Request, err error)
	peers        *peers
	upgrades     []string  // protocols, in lower case
	origins      []string  // whose pages may read refusals
	variants     *variants // nil: no rules
}

// protectedNames returns the canonical names of the headers that a Connection
// header must not remove: the headers in lists and those that replace the method, which
// decide in the proxy, and the headers that many upstreams use to identify a caller.
func protectedNames(lists ...[]string) map[string]bool {
	names := map[string]bool{}
	for _, list := range append(lists, httpname.OverrideHeaders(), []string{
		"Authorization", "Cookie", "Host", "Content-Type", "Content-Length", "Content-Encoding", "Idempotency-Key",
		"Forwarded", "X-Forwarded-For", "X-Forwarded-Host", "X-Forwarded-Proto",
	}) {
		for _, name := range httpname.Canonical(list) {
			names[name] = true
		}
	}
	return names
}

// ServeHTTP implements http.Handler.
func (d *router) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	w, end := limitWrites(w, r, d.writeTimeout)
	defer end()
	d.ignoreUpgrade(r.Header)
	if p := d.problemOf(r); p != nil {
		d.refuse(w, r, *p)
		return
	}
	to := d.strictest(d.find(r), r)
	if d.isProtected(to, r) && len(r.Header["Upgrade"]) > 0 {
		d.refuse(w, r, problem.UpgradeRefused)
		return
	}
	reads := d.reads(to, r)
	v, err := d.limits.Begin(reads)
	if err != nil {
		d.warnOfLimit(r, err)
		p, _ := limited(err)
		d.refuse(w, r, p)
		return
	}
	defer v.End()
	if reads {
		v.Request = r
		own, end := limitPauses(limit.WithVisit(r.Context(), v), w, r, d.bodyTimeout, v)
		defer end()
		r = own
	}
	if !reads && to.fromBody && to.protects(r) {
		to.withoutKey.ServeHTTP(w, r)
		return
	}
	to.ServeHTTP(w, r)
}

func (d *router) refuse(w http.ResponseWriter, r *http.Request, p semelhttp.Problem) {
	refused(r, &p)
	setBodyDeadline(w, r, d.bodyTimeout)
	semelhttp.AllowOrigin(w, r, d.origins)
	problem.Write(w, p)
}

// problemOf returns the reason to refuse a request on every route, or nil.
func (d *router) problemOf(r *http.Request) *semelhttp.Problem {
	if p := d.unforwardable(r); p != nil {
		return p
	}
	switch {
	case d.removesProtected(r.Header["Connection"]):
		return &problem.HopByHop
	case d.ambiguous(r.Header):
		return &problem.Ambiguous
	case d.reserved(r.Header):
		return &problem.KeyReserved
	case d.rules != nil && !isNormal(r.URL.Path):
		return &problem.BadPath // the upstream may normalize the path, and another rule would apply
	}
	return nil
}

// unforwardable returns the reason why a request goes to the service in no case, or nil.
func (d *router) unforwardable(r *http.Request) *semelhttp.Problem {
	switch {
	case !d.peers.allow(r):
		return &problem.PeerRefused
	case r.Method == http.MethodConnect:
		return &problem.NotProxied
	case !strings.HasPrefix(r.URL.Path, "/"):
		return &problem.BadTarget
	}
	return nil
}

// removesProtected reports whether a Connection header names a protected header.
// The proxy would have to remove that header after it used its value.
func (d *router) removesProtected(lines []string) bool {
	for _, line := range lines {
		for name := range strings.SplitSeq(line, ",") {
			name = textproto.CanonicalMIMEHeaderKey(strings.TrimSpace(name))
			if d.protected[name] || strings.HasPrefix(name, "Semel-") {
				return true
			}
		}
	}
	return false
}

// lookalikesOf returns the names that have an underscore, with hyphens instead.
func lookalikesOf(names map[string]bool) map[string]bool {
	found := map[string]bool{}
	for name := range names {
		if strings.Contains(name, "_") {
			found[hyphened(name)] = true
		}
	}
	return found
}

func hyphened(name string) string {
	return textproto.CanonicalMIMEHeaderKey(strings.ReplaceAll(name, "_", "-"))
}

// ambiguous reports whether an upstream can mistake a header for a protected
// one: many servers (CGI, WSGI, Rack) treat an underscore like a hyphen.
func (d *router) ambiguous(h http.Header) bool {
	for name := range h {
		plain := name
		if strings.Contains(name, "_") {
			plain = hyphened(name)
			if d.protected[plain] || strings.HasPrefix(plain, "Semel-") {
				return true
			}
		}
		if d.lookalikes[plain] && !d.protected[name] {
			return true
		}
	}
	return false
}

// isNormal reports whether a path stays the same when a server cleans it.
func isNormal(path string) bool {
	for rest := path[1:]; rest != ""; {
		segment, after, more := strings.Cut(rest, "/")
		if segment == "." || segment == ".." || segment == "" && more {
			return false
		}
		rest = after
	}
	return true
}

func (d *router) find(r *http.Request) *route {
	if d.rules == nil {
		return d.rest
	}
	r = plainHost(upperMethod(r))
	h, _ := d.rules.Handler(r)
	if to, ok := h.(*route); ok {
		return to
	}
	// ServeMux wants to redirect to the same path with a slash at its end. It
	// does so only if no rule matches but a rule for all paths below this one.
	// The proxy does not redirect: the rule of the parent directory applies.
	dir := *r
	dir.URL = r.URL.ResolveReference(&url.URL{Path: "."})
	h, _ = d.subtrees.Handler(&dir)
	if to, ok := h.(*route); ok {
		return to
	}
	return d.rest // unreachable: a path with a slash at its end is not redirected, and "/" matches every path
}

// plainHost returns r with its host in the form of the rules, because ServeMux
// does not ignore capitals or a dot at the end of a host name.
func plainHost(r *http.Request) *http.Request {
	host, _, err := net.SplitHostPort(r.Host)
	if err != nil { // there is no port
		host = r.Host
	}
	if host = config.Host(host); host == r.Host {
		return r
	}
	plain := *r
	plain.Host = host
	return &plain
}

// reads reports whether the proxy reads the whole body first, before it looks for
// the key.
func (d *router) reads(to *route, r *http.Request) bool {
	return d.isProtected(to, r) || d.searches(to, r)
}

// isProtected reports whether a request takes effect once.
func (d *router) isProtected(to *route, r *http.Request) bool {
	if to.passThrough || !to.protects(r) {
		return false
	}
	if !to.keyOptional {
		return true
	}
	return slices.ContainsFunc(d.keyHeaders, func(name string) bool { return len(r.Header[name]) > 0 })
}
