package upstream

import (
	"errors"
	"io"
	"net/http"
	"net/http/httputil"
	"strings"
)

// seesTrailers has copies of r see the trailers, too, that were not announced.
// They are known only when the body has been read to its end, and the server
// tells them to its own request alone, unless there is a map already.
func seesTrailers(r *http.Request) {
	if r.Trailer == nil && r.ContentLength < 0 {
		r.Trailer = http.Header{}
	}
}

// trailers sends on what comes behind the body, which httputil.ReverseProxy
// announces and then leaves out: it copies the trailers when there are none
// yet. They need chunks, also for a body that has been read already and has a
// known length.
func (u *Upstream) trailers(pr *httputil.ProxyRequest) {
	in, out := pr.In, pr.Out
	out.Trailer = nil
	if in.Trailer == nil {
		return
	}
	b := &trailed{Reader: http.NoBody, in: in.Trailer, out: http.Header{}, may: u.mayTrail}
	if out.Body != nil {
		b.Reader = out.Body
	}
	b.copy() // the names, to announce them; with their values if the body was read
	out.Body, out.Trailer = b, b.out
	out.ContentLength, out.TransferEncoding = -1, []string{"chunked"}
}

// mayTrail reports whether a trailer is sent on: not one that some servers
// would take for a header that only the proxy may set, or that decided here,
// nor one that HTTP does not allow and http.Transport refuses to send.
func (u *Upstream) mayTrail(name string) bool {
	name = http.CanonicalHeaderKey(strings.ReplaceAll(name, "_", "-"))
	switch name {
	case "Content-Length", "Transfer-Encoding", "Trailer":
		return false
	}
	return !strings.HasPrefix(name, ownPrefix) && !u.opt.Protected[name]
}

// trailed is a body that takes along the trailers when it ends. httputil closes
// what it reads.
type trailed struct {
	io.Reader
	in, out http.Header
	may     func(name string) bool
}

// Read implements io.Reader. The trailers are written by the goroutine that
// reads the end.
func (t *trailed) Read(p []byte) (int, error) {
	n, err := t.Reader.Read(p)
	if errors.Is(err, io.EOF) {
		t.copy()
	}
	return n, err
}

// Close implements io.Closer.
func (*trailed) Close() error { return nil }

func (t *trailed) copy() {
	for name, values := range t.in {
		if t.may(name) {
			t.out[name] = values
		}
	}
}
