package semelhttp

import (
	"bufio"
	"context"
	"net"
	"net/http"
	"sync"
	"sync/atomic"
)

// handlerWriter is the http.ResponseWriter of one run of a handler. After close
// it refuses every use, so that a goroutine which the handler left behind cannot
// change an answer that is already stored or sent.
type handlerWriter struct {
	server http.ResponseWriter
	closed atomic.Bool // read without mu, because Header must not wait for a write

	mu       sync.Mutex
	response *response // nil after close
}

type writerKey struct{}

// withWriter lets NoEffect and Final find the writer of a request.
func withWriter(ctx context.Context, w *handlerWriter) context.Context {
	return context.WithValue(ctx, writerKey{}, w)
}

// Header implements http.ResponseWriter. It returns the server's own map, so that
// the handler finds the headers that an outer handler has set. After close it
// returns a map that nobody reads, because the server may still need its own one
// for the answer and its trailers.
func (w *handlerWriter) Header() http.Header {
	if w.closed.Load() {
		return http.Header{}
	}
	return w.server.Header()
}

// Unwrap is for http.ResponseController: the server sets deadlines and full
// duplex.
func (w *handlerWriter) Unwrap() http.ResponseWriter { return w.server }

// WriteHeader implements http.ResponseWriter.
func (w *handlerWriter) WriteHeader(status int) {
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.response != nil {
		w.response.writeHeader(status)
	}
}

// Write implements http.ResponseWriter.
func (w *handlerWriter) Write(p []byte) (int, error) { return writeLocked(w, p) }

// WriteString implements io.StringWriter.
func (w *handlerWriter) WriteString(s string) (int, error) { return writeLocked(w, s) }

func writeLocked[T []byte | string](w *handlerWriter, p T) (int, error) {
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.response == nil {
		return 0, errReturned
	}
	return write(w.response, p)
}

// Flush implements http.Flusher.
func (w *handlerWriter) Flush() { _ = w.FlushError() }

// FlushError is Flush for http.ResponseController.
func (w *handlerWriter) FlushError() error {
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.response == nil {
		return errReturned
	}
	return w.response.flush()
}

// Hijack implements http.Hijacker and always fails: Semel cannot record an answer
// that it does not see.
func (w *handlerWriter) Hijack() (net.Conn, *bufio.ReadWriter, error) { return nil, nil, errHijack }

// close ends the handler's access to the response. It waits for a write that is
// under way.
func (w *handlerWriter) close() {
	w.closed.Store(true)
	w.mu.Lock()
	w.response = nil
	w.mu.Unlock()
}
