package semelhttp

import (
	"bufio"
	"context"
	"net"
	"net/http"
	"sync"
	"sync/atomic"

	"github.com/semel-go/semel/store"
)

// loan is what one run of a handler is lent: its http.ResponseWriter, its body
// and its context. It is all that the handler, and goroutines that it leaves
// behind, ever hold of the request, so that the rest can serve the next one:
// with the handler's return the loan is over, and leads nowhere any more.
type loan struct {
	mu    sync.Mutex
	c     *capture            // nil: it is over
	w     http.ResponseWriter // the server's
	ended atomic.Bool         // it is over, for those who must not wait for a write
	ctx   loanContext
	body  body
	// lines is room for what is kept of the header: what is kept is handed
	// over, and never used again.
	lines [2]store.Header
}

// loanContext adds the loan to a context: a context.WithValue that needs no
// allocation of its own.
type loanContext struct {
	context.Context //nolint:containedctx // it is one
	loan            *loan
}

type loanKey struct{}

// Value implements context.Context.
func (c *loanContext) Value(key any) any {
	if key == (loanKey{}) {
		return c.loan
	}
	return c.Context.Value(key)
}

// Header implements http.ResponseWriter. It is the server's own map, so that
// handlers find what was set before them. Once the handler has returned it is
// one that nobody reads: the answer may still be waiting for the store, and
// then for its trailers.
func (l *loan) Header() http.Header {
	if l.ended.Load() {
		return http.Header{}
	}
	return l.w.Header()
}

// Unwrap is for http.ResponseController: deadlines and full duplex are the
// server's affair.
func (l *loan) Unwrap() http.ResponseWriter { return l.w }

// WriteHeader implements http.ResponseWriter.
func (l *loan) WriteHeader(status int) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.c != nil {
		l.c.writeHeader(status)
	}
}

// Write implements http.ResponseWriter.
func (l *loan) Write(p []byte) (int, error) { return lentWrite(l, p) }

// WriteString implements io.StringWriter.
func (l *loan) WriteString(s string) (int, error) { return lentWrite(l, s) }

func lentWrite[T []byte | string](l *loan, p T) (int, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.c == nil {
		return 0, errReturned
	}
	return write(l.c, p)
}

// Flush implements http.Flusher.
func (l *loan) Flush() { _ = l.FlushError() }

// FlushError is Flush for http.ResponseController.
func (l *loan) FlushError() error {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.c == nil {
		return errReturned
	}
	return l.c.flush()
}

// Hijack implements http.Hijacker, and refuses: nobody could tell what was
// answered.
func (l *loan) Hijack() (net.Conn, *bufio.ReadWriter, error) { return nil, nil, errHijack }

// over ends the loan, when the handler has returned.
func (l *loan) over() {
	l.ended.Store(true)
	l.mu.Lock()
	l.c = nil
	l.mu.Unlock()
	l.body.end()
}
