package hook

import (
	"context"
	"fmt"
	"io"
	"maps"
	"net"
	"net/http"
	"net/textproto"
	"slices"
	"strings"

	"github.com/semel-go/semel/cmd/semel/internal/input"
)

// Denied reports that the authorize hook did not allow a replay.
type Denied struct {
	Status    int    // 401 or 403; 503: it could not be asked
	Challenge string // WWW-Authenticate, for 401
	Err       error  // why it could not be asked
}

// Error implements error.
func (d *Denied) Error() string {
	if d.Err != nil {
		return fmt.Sprintf("authorize-url: %v", d.Err)
	}
	return fmt.Sprintf("authorize-url: answered %d", d.Status)
}

// Unwrap returns Err.
func (d *Denied) Unwrap() error { return d.Err }

// ownForwarded are the headers that Authorize sets itself.
var ownForwarded = []string{"X-Forwarded-Method", "X-Forwarded-Uri", "X-Forwarded-Host", "X-Forwarded-For", "X-Forwarded-Proto"}

// Authorize asks, by GET, with the headers of the request and X-Forwarded-
// Method, -Uri, -Host, -For and -Proto, whether its sender may see a kept answer.
// 2xx is a yes; any other answer, and none, is a *Denied.
func (h *Hook) Authorize(r *http.Request) error {
	ctx, cancel := context.WithTimeout(r.Context(), h.timeout)
	defer cancel()
	req, err := http.NewRequestWithContext(ctx, http.MethodGet, h.url.String(), nil)
	if err != nil {
		return &Denied{Status: http.StatusServiceUnavailable, Err: err}
	}
	req.Header = h.asked(r)
	res, err := h.client.Do(req)
	if err != nil {
		return &Denied{Status: http.StatusServiceUnavailable, Err: input.WithoutQuotes(input.WithoutURL(err))}
	}
	defer func() { _ = res.Body.Close() }()      // it was read as far as it counts
	_, _ = io.CopyN(io.Discard, res.Body, 4<<10) // so that the connection can be used again
	switch {
	case res.StatusCode >= 200 && res.StatusCode < 300:
		return nil
	case res.StatusCode == http.StatusUnauthorized:
		return &Denied{Status: res.StatusCode, Challenge: res.Header.Get("Www-Authenticate")}
	case res.StatusCode == http.StatusForbidden:
		return &Denied{Status: res.StatusCode}
	}
	return &Denied{Status: http.StatusServiceUnavailable, Err: fmt.Errorf("the answer is %d, neither 2xx nor 401 nor 403", res.StatusCode)}
}

// lookalike reports whether a name has an underscore, because many servers take
// X_Forwarded_Uri for X-Forwarded-Uri. A protected name is none, because the proxy refuses
// requests that have it in another spelling, too.
func (h *Hook) lookalike(name string) bool {
	own := slices.Contains(ownForwarded, textproto.CanonicalMIMEHeaderKey(strings.ReplaceAll(name, "_", "-")))
	return strings.Contains(name, "_") && (own || !h.protected[name])
}

// asked returns the headers of r without the headers of its connection and its
// body, without conditions and ranges, and without names that have an underscore and are
// not protected. Of the incoming X-Forwarded-* headers it keeps the protected ones, and
// with trust -For, -Host and -Proto.
func (h *Hook) asked(r *http.Request) http.Header {
	out := maps.Clone(r.Header)
	for _, line := range r.Header["Connection"] {
		for name := range strings.SplitSeq(line, ",") {
			delete(out, textproto.CanonicalMIMEHeaderKey(textproto.TrimString(name)))
		}
	}
	for name := range out {
		switch {
		case strings.HasPrefix(name, "X-Forwarded-") && (!h.protected[name] || slices.Contains(ownForwarded, name)),
			strings.HasPrefix(name, "Proxy-"), strings.HasPrefix(name, "Content-"), strings.HasPrefix(name, "Semel-"),
			strings.HasPrefix(name, "If-"), // conditions concern the answer of the service only
			h.lookalike(name):
			delete(out, name)
		}
	}
	for _, name := range []string{"Connection", "Keep-Alive", "Te", "Trailer", "Transfer-Encoding", "Upgrade", "Http2-Settings", "Expect", "Forwarded", "Range"} {
		delete(out, name)
	}
	out.Set("X-Forwarded-Method", r.Method)
	out.Set("X-Forwarded-Uri", r.URL.RequestURI())
	proto := "http"
	if r.TLS != nil {
		proto = "https"
	}
	out.Set("X-Forwarded-Host", r.Host)
	out.Set("X-Forwarded-Proto", proto)
	via, _, err := net.SplitHostPort(r.RemoteAddr)
	if err == nil {
		out.Set("X-Forwarded-For", via)
	}
	if !h.trust {
		return out
	}
	for _, name := range []string{"X-Forwarded-Host", "X-Forwarded-Proto"} {
		if v := r.Header[name]; len(v) > 0 {
			out[name] = v
		}
	}
	switch v := r.Header["X-Forwarded-For"]; {
	case len(v) == 0:
	case err != nil: // the peer of a Unix socket has no address
		out["X-Forwarded-For"] = v
	default:
		out.Set("X-Forwarded-For", strings.Join(v, ", ")+", "+via)
	}
	return out
}
