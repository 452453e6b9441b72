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
