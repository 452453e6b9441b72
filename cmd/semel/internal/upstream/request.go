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

// The headers that describe the attempt to the upstream.
const (
	fenceHeader   = "Semel-Fence"
	attemptHeader = "Semel-Attempt"
	digestHeader  = "Semel-Request-Digest"
	// ownPrefix begins the names of headers that only the proxy may set.
	ownPrefix = "Semel-"
)

// rewrite prepares the request to the upstream. httputil.ReverseProxy has already
// removed the hop-by-hop headers, Forwarded, and X-Forwarded-*.
func (u *Upstream) rewrite(pr *httputil.ProxyRequest) {
	pr.SetURL(u.opt.URL)
	pr.Out.URL.RawQuery = pr.In.URL.RawQuery // unchanged, because the digest covers it
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
		h.Del("Expect") // the proxy has read the body already
	}
	u.trailers(pr)
	semelhttp.NoResend(pr.Out)
	if keyed {
		preventResend(pr.Out)
	}
}

// preventResend stops http.Transport from sending a request without a body a
// second time, even if its method is safe. semelhttp.NoResend leaves such a
// request alone, but a request with a key is protected. The empty body cannot be
// read twice, and http.Transport sends it as no body.
func preventResend(r *http.Request) {
	if r.Body == nil {
		r.Body, r.ContentLength, r.TransferEncoding = io.NopCloser(strings.NewReader("")), 0, []string{"identity"}
	}
}

// forwarded sets the X-Forwarded-* headers.
func (u *Upstream) forwarded(pr *httputil.ProxyRequest) {
	in, out := pr.In.Header, pr.Out.Header
	if u.opt.TrustForwarded {
		out["X-Forwarded-For"] = in["X-Forwarded-For"] // SetXForwarded appends to it
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
