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
	"github.com/semel-go/semel/cmd/semel/internal/problem"
	"github.com/semel-go/semel/semelhttp"
)

// door looks at each request first, and finds its route.
type door struct {
	// protected are the headers that must reach the upstream as they came:
	// what they say decided whose request it is, and which.
	protected  map[string]bool
	keyHeaders []string
	rules      *http.ServeMux // nil: there are none
	subtrees   *http.ServeMux // the rules that hold for all below a path
	rest       *route

	bodyTimeout time.Duration // see hurry
}

// protectedNames are the canonical names of headers that a Connection header
// must not remove: those that decide here, and those by which upstreams
// commonly decide who asks for what.
func protectedNames(lists ...[]string) map[string]bool {
	names := map[string]bool{}
	for _, list := range append(lists, []string{
		"Authorization", "Cookie", "Host", "Content-Type", "Content-Length", "Content-Encoding", "Idempotency-Key",
		"Forwarded", "X-Forwarded-For", "X-Forwarded-Host", "X-Forwarded-Proto",
	}) {
		for _, name := range canonical(list) {
			names[name] = true
		}
	}
	return names
}

func canonical(names []string) []string {
	out := make([]string, len(names))
	for i, n := range names {
		out[i] = textproto.CanonicalMIMEHeaderKey(n)
	}
	return out
}

// ServeHTTP implements http.Handler.
func (d *door) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	if p := d.wrong(r); p != nil {
		d.refuse(w, r, *p)
		return
	}
	to := d.find(r)
	if d.keyed(to, r) && len(r.Header["Upgrade"]) > 0 {
		d.refuse(w, r, problem.UpgradeRefused)
		return
	}
	if d.reads(to, r) {
		r = hear(w, r, d.bodyTimeout)
	}
	to.ServeHTTP(w, r)
}

func (d *door) refuse(w http.ResponseWriter, r *http.Request, p semelhttp.Problem) {
	hurry(w, r, d.bodyTimeout)
	problem.Write(w, p)
}

// wrong says what is wrong with a request, whatever its route.
func (d *door) wrong(r *http.Request) *semelhttp.Problem {
	switch {
	case r.Method == http.MethodConnect:
		return &problem.NotProxied
	case !strings.HasPrefix(r.URL.Path, "/"):
		return &problem.BadTarget
	case d.strips(r.Header["Connection"]):
		return &problem.HopByHop
	case d.ambiguous(r.Header):
		return &problem.Ambiguous
	case d.rules != nil && !isNormal(r.URL.Path):
		return &problem.BadPath // it could be one rule's here and another's upstream
	}
	return nil
}

// strips reports whether a Connection header names a protected one, which
// would then be removed on the way, after it has decided here.
func (d *door) strips(lines []string) bool {
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

// ambiguous reports whether a header could be taken for a protected one: many
// servers (CGI, WSGI, Rack) do not tell an underscore from a hyphen.
func (d *door) ambiguous(h http.Header) bool {
	for name := range h {
		if !strings.Contains(name, "_") {
			continue
		}
		name = textproto.CanonicalMIMEHeaderKey(strings.ReplaceAll(name, "_", "-"))
		if d.protected[name] || strings.HasPrefix(name, "Semel-") {
			return true
		}
	}
	return false
}

// isNormal reports whether a path means the same to all who clean paths, and
// to those who do not.
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

func (d *door) find(r *http.Request) *route {
	if d.rules == nil {
		return d.rest
	}
	r = plainHost(r)
	h, _ := d.rules.Handler(r)
	if to, ok := h.(*route); ok {
		return to
	}
	// ServeMux would redirect to a rule's path with a slash: that is not this
	// path. It does so only where no rule but one for all below a path matches,
	// and that is the one which holds for the directory that the path is in.
	dir := *r
	dir.URL = r.URL.ResolveReference(&url.URL{Path: "."})
	h, _ = d.subtrees.Handler(&dir)
	if to, ok := h.(*route); ok {
		return to
	}
	return d.rest // cannot be: a path with a slash is not redirected, and all are below "/"
}

// plainHost is r with its host as rules have it, for to ServeMux a host in
// capitals, or with the dot of the root, would be another.
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

// reads reports whether the body of a request is read before anything else is
// done with it.
func (d *door) reads(to *route, r *http.Request) bool {
	return d.keyed(to, r) || to.fromBody && slices.Contains(to.methods, r.Method)
}

// keyed reports whether a request is one to protect.
func (d *door) keyed(to *route, r *http.Request) bool {
	if to.passThrough || !slices.Contains(to.methods, r.Method) {
		return false
	}
	if !to.keyless {
		return true
	}
	return slices.ContainsFunc(d.keyHeaders, func(name string) bool { return len(r.Header[name]) > 0 })
}
