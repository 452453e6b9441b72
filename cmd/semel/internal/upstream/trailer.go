package upstream

import (
	"errors"
	"io"
	"net/http"
	"net/http/httputil"
	"strings"
)

// ShareTrailers makes trailers that were not announced visible in copies of r, the
// server's own request. net/http knows them only at the end of the body and then writes
// them to its own request, unless a map is there already, which the copies share.
func ShareTrailers(r *http.Request) {
	if r.Trailer == nil && r.ContentLength < 0 {
		r.Trailer = http.Header{}
	}
}

// trailers passes the trailers of the request on. httputil.ReverseProxy only
// announces them, because it copies them before their values are known. Trailers
// need a chunked body, even if the length is known.
func (u *Upstream) trailers(pr *httputil.ProxyRequest) {
	in, out := pr.In, pr.Out
	out.Trailer = nil
	if in.Trailer == nil {
		return
	}
	b := &trailerBody{Reader: http.NoBody, in: in.Trailer, out: http.Header{}, allowed: u.trailerAllowed}
	if out.Body != nil {
		b.Reader = out.Body
	}
	b.copy() // the names are announced; the values are known if the body was read
	out.Body, out.Trailer = b, b.out
	out.ContentLength, out.TransferEncoding = -1, []string{"chunked"}
}

// trailerAllowed reports whether the proxy passes a trailer on. It drops a trailer
// that some servers mistake for a protected header or for a header that only the
// proxy may set, and a trailer that HTTP forbids.
func (u *Upstream) trailerAllowed(name string) bool {
	name = hyphened(name)
	switch name {
	case "Content-Length", "Transfer-Encoding", "Trailer":
		return false
	}
	return !strings.HasPrefix(name, OwnPrefix) && !u.protected[name]
}

// hyphened is the form that all names share which some servers take for one name: with hyphens
// for underscores.
func hyphened(name string) string {
	return http.CanonicalHeaderKey(strings.ReplaceAll(name, "_", "-"))
}

// trailerBody is a body that copies the trailers at its end. httputil closes the
// body that it wraps.
type trailerBody struct {
	io.Reader
	in, out http.Header
	allowed func(name string) bool
}

// Read implements io.Reader. The goroutine that reads the end writes the trailers.
func (t *trailerBody) Read(p []byte) (int, error) {
	n, err := t.Reader.Read(p)
	if errors.Is(err, io.EOF) {
		t.copy()
	}
	return n, err
}

// Close implements io.Closer.
func (*trailerBody) Close() error { return nil }

func (t *trailerBody) copy() {
	for name, values := range t.in {
		if t.allowed(name) {
			t.out[name] = values
		}
	}
}
