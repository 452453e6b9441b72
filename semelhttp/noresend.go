package semelhttp

import (
	"io"
	"net/http"
)

// NoResend keeps net/http from sending an outgoing request twice by itself.
//
// http.Transport takes an Idempotency-Key header for the promise that a
// request can be repeated: when a reused connection dies before the answer, it
// sends a POST again without telling anybody, unless the body cannot be read
// twice. If the server performs its effect and then drops the connection, the
// effect happens twice and the caller sees a success. So r gets a body that
// cannot be read twice, even when it is empty; the dead connection is then an
// error, for somebody who knows whether to try again.
//
// Call it on requests to be forwarded, last in httputil.ReverseProxy.Rewrite.
// What is sent stays the same. Requests with methods that are safe to repeat
// (GET, HEAD, OPTIONS, TRACE) are left alone, and so is CONNECT.
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
	// A body of length 0 means "unknown length" to net/http, which would send
	// an empty chunk. "identity" has it send neither chunks nor a length, and
	// the length that servers expect is put in under a name that net/http does
	// not take for its own. HTTP/2 needs and uses neither.
	r.TransferEncoding = []string{"identity"}
	if r.Header == nil {
		r.Header = http.Header{}
	}
	r.Header["content-length"] = []string{"0"}
}

// emptyBody is empty, but not http.NoBody, which net/http counts as repeatable.
type emptyBody struct{}

func (emptyBody) Read([]byte) (int, error) { return 0, io.EOF }
func (emptyBody) Close() error             { return nil }
