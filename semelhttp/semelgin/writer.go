package semelgin

import (
	"bufio"
	"errors"
	"io"
	"net"
	"net/http"

	"github.com/gin-gonic/gin"
)

// writer is the gin.ResponseWriter of the protected chain. As Gin's own, it holds the
// status until the body begins; unlike it, it knows whether the chain set a status.
type writer struct {
	gin.ResponseWriter                     // of the outer middleware; for CloseNotify and Pusher
	semel              http.ResponseWriter // of semelhttp
	status             int
	statusSet          bool
	size               int  // -1: the header is not written
	broken             bool // see ReadFrom
}

func newWriter(outer gin.ResponseWriter, semel http.ResponseWriter) *writer {
	status := outer.Status() // 404 or 405 if Gin has found no route
	return &writer{ResponseWriter: outer, semel: semel, status: status, statusSet: status != http.StatusOK, size: -1}
}

// finish sends the status of a chain that wrote no body. A chain that set no status
// has not answered.
func (w *writer) finish() {
	if w.statusSet {
		w.WriteHeaderNow()
	}
}

// lacksBody reports whether the chain has set a status and a Content-Type for a body, and
// has written neither. Renderers set both before they can fail.
func (w *writer) lacksBody() bool {
	bodyAllowed := w.status >= 200 && w.status != http.StatusNoContent && w.status != http.StatusNotModified
	return w.statusSet && !w.Written() && bodyAllowed && len(w.Header()["Content-Type"]) > 0
}

func (w *writer) Header() http.Header         { return w.semel.Header() }
func (w *writer) Unwrap() http.ResponseWriter { return w.semel }
func (w *writer) Status() int                 { return w.status }
func (w *writer) Size() int                   { return w.size }
func (w *writer) Written() bool               { return w.size >= 0 }

func (w *writer) WriteHeader(status int) {
	if status > 0 && !w.Written() {
		w.status, w.statusSet = status, true
	}
}

func (w *writer) WriteHeaderNow() {
	if !w.Written() {
		w.size = 0
		w.semel.WriteHeader(w.status)
	}
}

func (w *writer) Write(p []byte) (int, error) {
	w.WriteHeaderNow()
	n, err := w.semel.Write(p)
	w.size += n
	return n, err
}

func (w *writer) WriteString(s string) (int, error) {
	w.WriteHeaderNow()
	n, err := io.WriteString(w.semel, s)
	w.size += n
	return n, err
}

// ReadFrom implements io.ReaderFrom. A body that cannot be read to its end is half an
// answer, and Gin only notes the error.
func (w *writer) ReadFrom(r io.Reader) (int64, error) {
	n, err := io.Copy(struct{ io.Writer }{w}, r)
	w.broken = w.broken || err != nil && !errors.Is(err, http.ErrBodyNotAllowed)
	return n, err
}

func (w *writer) Flush() {
	w.WriteHeaderNow()
	_ = http.NewResponseController(w.semel).Flush() // Gin's Flush has no error
}

// Hijack always fails; see package semelhttp.
func (w *writer) Hijack() (net.Conn, *bufio.ReadWriter, error) {
	return http.NewResponseController(w.semel).Hijack()
}
