package upstream

import (
	"bytes"
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
	FenceHeader   = "Semel-Fence"
	AttemptHeader = "Semel-Attempt"
	DigestHeader  = "Semel-Request-Digest"
	KeyHashHeader = "Semel-Key-Hash"
	// OwnPrefix begins the names of headers that only Semel may set.
	OwnPrefix = "Semel-"
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
		if strings.HasPrefix(name, OwnPrefix) {
			delete(h, name)
		}
	}
	x, keyed := semel.FromContext(pr.In.Context())
	if keyed {
		h.Set(FenceHeader, strconv.FormatUint(x.Fence(), 10))
		h.Set(AttemptHeader, strconv.Itoa(x.Attempt()))
		h.Set(DigestHeader, x.Fingerprint())
		if u.opt.HashedKeys {
			h.Set(KeyHashHeader, x.Key())
		}
		h.Del("Expect") // the proxy has read the body already
	}
	u.trailers(pr)
	semelhttp.NoResend(pr.Out)
	if keyed {
		preventResend(pr.Out)
		joinWrites(pr.Out)
	}
}

// smallBody is the size of the write buffer of http.Transport, in bytes.
const smallBody = 4 << 10

// joinWrites makes http.Transport send a small body in one write with the headers,
// which it does only for a body in memory. The proxy has read the body of a request
// with a key already, so it does not wait for the client here.
func joinWrites(r *http.Request) {
	if r.Body == nil || r.ContentLength <= 0 || r.ContentLength > smallBody {
		return
	}
	b := make([]byte, r.ContentLength)
	n, err := io.ReadFull(r.Body, b)
	if err != nil { // http.Transport finds the same error, or that the body is too short
		r.Body = io.NopCloser(io.MultiReader(bytes.NewReader(b[:n]), r.Body))
		return
	}
	r.Body = io.NopCloser(bytes.NewReader(b))
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
	// SetXForwarded removes the addresses if the peer has none, as on a Unix socket.
	if v := in["X-Forwarded-For"]; len(v) > 0 && len(out["X-Forwarded-For"]) == 0 {
		out["X-Forwarded-For"] = v
	}
}
