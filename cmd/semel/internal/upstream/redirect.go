package upstream

import (
	"net/http"
	"net/url"
	"strings"
)

// renameLocation rewrites a Location or Content-Location that names the upstream to
// the name that the client used. Otherwise a client that follows a redirect would
// repeat its request past the proxy.
func (u *Upstream) renameLocation(res *http.Response) {
	for _, name := range []string{"Location", "Content-Location"} {
		if values := res.Header[name]; len(values) == 1 {
			if renamed, ok := u.renamed(values[0], res.Request); ok {
				values[0] = renamed
			}
		}
	}
}

// renamed returns the client's form of a reference in the answer to out, the request
// to the upstream. The name and the scheme that the client used are in its X-Forwarded
// headers, as the upstream got them.
func (u *Upstream) renamed(reference string, out *http.Request) (string, bool) {
	to, err := url.Parse(reference)
	if err != nil || to.Opaque != "" || to.Host == "" && !strings.HasPrefix(to.Path, "/") {
		return "", false
	}
	path, below := u.clientPath(to.EscapedPath())
	if to.Host == "" { // it stays a path
		if !below || path == to.EscapedPath() {
			return "", false
		}
		return path + suffix(to), true
	}
	if to.User != nil || !below || !u.isUpstream(to, out) {
		return "", false
	}
	host, scheme := first(out.Header["X-Forwarded-Host"]), first(out.Header["X-Forwarded-Proto"])
	if host == "" || scheme == "" {
		return path + suffix(to), true
	}
	return scheme + "://" + host + path + suffix(to), true
}

// clientPath removes the path of the upstream's URL from a path. below is false for a
// path that no client can reach.
func (u *Upstream) clientPath(path string) (client string, below bool) {
	base := strings.TrimSuffix(u.opt.URL.EscapedPath(), "/")
	rest, below := strings.CutPrefix(path, base)
	if !below || rest != "" && rest[0] != '/' {
		return "", false
	}
	if rest == "" {
		rest = "/"
	}
	return rest, true
}

// isUpstream reports whether a URL names the upstream, by its address or by the Host
// that it was sent.
func (u *Upstream) isUpstream(to *url.URL, out *http.Request) bool {
	if to.Scheme != "" && to.Scheme != "http" && to.Scheme != "https" {
		return false
	}
	at := u.opt.URL
	if !strings.EqualFold(to.Hostname(), at.Hostname()) {
		return u.opt.ClientHost && strings.EqualFold(to.Host, out.Host) && to.Scheme != first(out.Header["X-Forwarded-Proto"])
	}
	return to.Port() == "" || portOf(to) == portOf(at)
}

// portOf is the port of a URL, or that of its scheme.
func portOf(to *url.URL) string {
	switch {
	case to.Port() != "":
		return to.Port()
	case to.Scheme == "https":
		return "443"
	}
	return "80"
}

// suffix is the query and the fragment of a URL.
func suffix(to *url.URL) string {
	s := ""
	if to.RawQuery != "" || to.ForceQuery {
		s = "?" + to.RawQuery
	}
	if to.Fragment != "" {
		s += "#" + to.EscapedFragment()
	}
	return s
}

// first is the first value of a header that may be a list.
func first(values []string) string {
	if len(values) == 0 {
		return ""
	}
	v, _, _ := strings.Cut(values[0], ",")
	return strings.TrimSpace(v)
}
