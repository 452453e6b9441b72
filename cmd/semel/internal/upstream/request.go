package upstream

import (
	"io"
	"net/http"
	"net/http/httputil"
	"strconv"
	"strings"

	"github.com/semel-go/semel"
	"github.com/semel-go/semel/semelhttp"
)

// The headers that tell the upstream of the run it serves.
const (
	fenceHeader   = "Semel-Fence"
	attemptHeader = "Semel-Attempt"
	digestHeader  = "Semel-Request-Digest"
	// ownPrefix is of headers that only the proxy may set.
	ownPrefix = "Semel-"
)

// rewrite makes the request that goes upstream. httputil.ReverseProxy has
// removed the hop-by-hop headers, and X-Forwarded-* and Forwarded as the
// client set them.
func (u *Upstream) rewrite(pr *httputil.ProxyRequest) {
	pr.SetURL(u.opt.URL)
	pr.Out.URL.RawQuery = pr.In.URL.RawQuery // as it came: the digest is of that
	u.forwarded(pr)
	if u.opt.ClientHost {
		pr.Out.Host = pr.In.Host
	}
	h := pr.Out.Header
	for name := range h {
		if strings.HasPrefix(name, ownPrefix) {
			delete(h, name)
		}
	}
	x, keyed := semel.FromContext(pr.In.Context())
	if keyed {
		h.Set(fenceHeader, strconv.FormatUint(x.Fence(), 10))
		h.Set(attemptHeader, strconv.Itoa(x.Attempt()))
		h.Set(digestHeader, x.Fingerprint())
		h.Del("Expect") // the body is here already
	}
	u.trailers(pr)
	semelhttp.NoResend(pr.Out)
	if keyed {
		once(pr.Out)
	}
}

// once keeps http.Transport from sending a request without a body again by
// itself, also one whose method is safe to repeat, which semelhttp.NoResend
// leaves alone: it has a key, so somebody says that it is not. An empty body
// that cannot be read twice is sent as none.
func once(r *http.Request) {
	if r.Body == nil {
		r.Body, r.ContentLength, r.TransferEncoding = io.NopCloser(strings.NewReader("")), 0, []string{"identity"}
	}
}

// forwarded tells the upstream where the request came from.
func (u *Upstream) forwarded(pr *httputil.ProxyRequest) {
	in, out := pr.In.Header, pr.Out.Header
	if u.opt.TrustForwarded {
		out["X-Forwarded-For"] = in["X-Forwarded-For"] // SetXForwarded adds to it
	}
	pr.SetXForwarded()
	if !u.opt.TrustForwarded {
		return
	}
	for _, name := range []string{"X-Forwarded-Host", "X-Forwarded-Proto"} {
		if v := in[name]; len(v) > 0 {
			out[name] = v
		}
	}
}
