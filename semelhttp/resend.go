package semelhttp

import (
	"bytes"
	"context"
	"fmt"
	"io"
	"net/http"
)

// bodies gives each attempt of a request a body of its own.
type bodies struct {
	first io.ReadCloser // the request's own, for the first attempt; nil: used, or none
	copy  func() (io.ReadCloser, error)
	size  int64
}

// newBodies copies the body into memory, unless GetBody can make it again or there
// is only one attempt. If it fails, it closes the body.
func newBodies(r *http.Request, limit int64, attempts int) (*bodies, error) {
	switch {
	case r.Body == nil || r.Body == http.NoBody:
		return &bodies{copy: func() (io.ReadCloser, error) { return http.NoBody, nil }}, nil
	case r.GetBody != nil:
		return &bodies{first: r.Body, copy: r.GetBody, size: r.ContentLength}, nil
	case attempts == 1:
		return &bodies{first: r.Body, size: r.ContentLength}, nil
	}
	defer func() { _ = r.Body.Close() }() // the copy replaces it
	if r.ContentLength > limit {
		return nil, tooLarge(limit)
	}
	b, err := readAll(r.Context(), io.LimitReader(r.Body, limit+1))
	if err != nil {
		return nil, fmt.Errorf("semelhttp: copying the request body for a repeat: %w", err)
	}
	if int64(len(b)) > limit {
		return nil, tooLarge(limit)
	}
	if r.ContentLength > 0 && int64(len(b)) != r.ContentLength { // sent with its real length, half a body would look whole
		return nil, fmt.Errorf("semelhttp: the request body has %d bytes, and Request.ContentLength is %d", len(b), r.ContentLength)
	}
	if len(b) == 0 {
		return &bodies{copy: func() (io.ReadCloser, error) { return http.NoBody, nil }}, nil
	}
	size := int64(len(b))
	if len(r.Trailer) > 0 {
		size = -1 // trailers need chunks
	}
	return &bodies{copy: func() (io.ReadCloser, error) { return io.NopCloser(bytes.NewReader(b)), nil }, size: size}, nil
}

// readAll reads body to its end or until ctx ends, because the writer of a body may
// never come. The reading goroutine then ends when the body is closed.
func readAll(ctx context.Context, body io.Reader) ([]byte, error) {
	if ctx.Done() == nil {
		return io.ReadAll(body)
	}
	type read struct {
		b   []byte
		err error
	}
	all := make(chan read, 1)
	go func() {
		b, err := io.ReadAll(body)
		all <- read{b, err}
	}()
	select {
	case r := <-all:
		return r.b, r.err
	case <-ctx.Done():
		return nil, context.Cause(ctx)
	}
}

func tooLarge(limit int64) error {
	return fmt.Errorf("semelhttp: the request body is over TransportOptions.MaxBody of %d bytes, so it cannot be copied for a repeat; set Request.GetBody or raise the limit", limit)
}

// next is the body of the next attempt.
func (b *bodies) next() (io.ReadCloser, error) {
	if body := b.first; body != nil {
		b.first = nil
		return body, nil
	}
	return b.copy()
}

// close closes the request's body if no attempt has taken it.
func (b *bodies) close() {
	if b.first != nil {
		_ = b.first.Close() // nothing was written to it
	}
}

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
