package upstream

import (
	"context"
	"errors"
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

	mu      sync.Mutex
	timer   *time.Timer
	over    bool // the answer has begun, or never will
	reading bool // the client is waited for
	whole   bool // the body was read to its end
}

// errSilent is a client that sent nothing for too long in the middle of a body.
var errSilent = errors.New("the client sent nothing more of its body")

// beginKey finds the begin of a request.
type beginKey struct{}

// bound gives r, which is answered to w, a limit, and a context that ends with
// it.
func bound(w http.ResponseWriter, r *http.Request, limit time.Duration) (_ *http.Request, _ *begin, end func()) {
	ctx, cancel := context.WithCancelCause(r.Context())
	b := &begin{limit: limit}
	b.timer = time.AfterFunc(limit, func() { b.giveUp(w, cancel) })
	out := r.WithContext(context.WithValue(ctx, beginKey{}, b))
	if r.Body != nil && r.Body != http.NoBody {
		b.ReadCloser, out.Body = r.Body, b
	} else {
		b.whole = true
	}
	return out, b, func() {
		b.end()
		cancel(nil)
	}
}

// giveUp ends what is waited for: the upstream, or the client, of which no
// context can tell the one that reads.
func (b *begin) giveUp(w http.ResponseWriter, cancel context.CancelCauseFunc) {
	b.mu.Lock()
	defer b.mu.Unlock()
	switch {
	case b.over:
	case b.reading:
		cancel(errSilent)
		_ = http.NewResponseController(w).SetReadDeadline(time.Now()) // a writer that cannot has no connection to wait for
	default:
		cancel(context.DeadlineExceeded)
	}
}

// Read implements io.Reader.
func (b *begin) Read(p []byte) (int, error) {
	b.mu.Lock()
	b.reading = true
	b.mu.Unlock()
	n, err := b.ReadCloser.Read(p)
	b.mu.Lock()
	defer b.mu.Unlock()
	b.reading, b.whole = false, b.whole || errors.Is(err, io.EOF)
	if !b.over {
		b.timer.Reset(b.limit)
	}
	return n, err
}

// isWhole reports whether the body was read to its end.
func (b *begin) isWhole() bool {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.whole
}

// end lets the answer take as long as it likes.
func (b *begin) end() {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.over = true
	b.timer.Stop()
}
