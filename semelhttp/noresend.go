package semelhttp

import (
	"io"
	"net/http"
)

// NoResend keeps net/http from sending an outgoing request twice by itself. Call it
// on requests that you forward, at the end of httputil.ReverseProxy.Rewrite. The
// bytes that are sent stay the same.
//
// If a request has an Idempotency-Key, http.Transport assumes that it can be
// repeated. When a reused connection breaks before the answer, http.Transport sends
// a POST again without an error, unless the body cannot be read twice. If the server
// took effect before the connection broke, the effect happens twice. NoResend gives
// r a body that cannot be read twice, also if it is empty, so that the broken
// connection becomes an error.
//
// NoResend does not change requests whose method is safe to repeat (GET, HEAD,
// OPTIONS, TRACE), nor CONNECT.
func NoResend(r *http.Request) {
	switch r.Method {
	case "", http.MethodGet, http.MethodHead, http.MethodOptions, http.MethodTrace, http.MethodConnect:
		return
	}
	r.GetBody = nil
	if r.Body != nil && r.Body != http.NoBody {
		return
	}
	r.Body, r.ContentLength = emptyBody{}, 0
	// net/http takes a body of length 0 for one of unknown length and would send an
	// empty chunk. With "identity" it sends neither chunks nor a length. Servers
	// expect a length, so it is set under a lower-case name that net/http does not
	// treat as its own. HTTP/2 needs and uses neither.
	r.TransferEncoding = []string{"identity"}
	if r.Header == nil {
		r.Header = http.Header{}
	}
	r.Header["content-length"] = []string{"0"}
}

// emptyBody is used instead of http.NoBody, which net/http counts as repeatable.
type emptyBody struct{}

func (emptyBody) Read([]byte) (int, error) { return 0, io.EOF }
func (emptyBody) Close() error             { return nil }
