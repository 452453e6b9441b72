package upstream

import (
	"context"
	"io"
	"net/http"
	"sync"
	"time"
)

// begin bounds how long the upstream may take to begin its answer. What a
// client needs to send its body does not count: while that comes in, the time
// begins anew.
type begin struct {
	io.ReadCloser // the client's body; nil: there is none
	limit         time.Duration

	mu    sync.Mutex
	timer *time.Timer
	over  bool // the answer has begun, or never will
}

// beginKey finds the begin of a request.
type beginKey struct{}

// bound gives r a limit, and a context that ends with it.
func bound(r *http.Request, limit time.Duration) (_ *http.Request, end func()) {
	ctx, cancel := context.WithCancelCause(r.Context())
	b := &begin{limit: limit, timer: time.AfterFunc(limit, func() { cancel(context.DeadlineExceeded) })}
	out := r.WithContext(context.WithValue(ctx, beginKey{}, b))
	if r.Body != nil && r.Body != http.NoBody {
		b.ReadCloser, out.Body = r.Body, b
	}
	return out, func() {
		b.end()
		cancel(nil)
	}
}

// Read implements io.Reader.
func (b *begin) Read(p []byte) (int, error) {
	n, err := b.ReadCloser.Read(p)
	b.mu.Lock()
	defer b.mu.Unlock()
	if !b.over {
		b.timer.Reset(b.limit)
	}
	return n, err
}

// end lets the answer take as long as it likes.
func (b *begin) end() {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.over = true
	b.timer.Stop()
}
