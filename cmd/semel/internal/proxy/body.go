package proxy

import (
	"errors"
	"io"
	"net/http"
	"os"
	"time"
)

// errSilent is a client that sent nothing for too long in the middle of a body.
var errSilent = errors.New("the client sent nothing more of its body")

// hearing bounds how long a client may be silent while its body is read, which
// is before anything is claimed or sent on. The whole may take as long as it
// likes.
type hearing struct {
	io.ReadCloser
	conn  *http.ResponseController
	limit time.Duration
	// The server tells its own request what comes behind the body, and not the
	// copy of it that has another body. In the server's the body must stay: it
	// would not know whether it still owes its client a "100 Continue".
	server, copy *http.Request
}

// hear is r with a body that is read so.
func hear(w http.ResponseWriter, r *http.Request, limit time.Duration) *http.Request {
	if !hurry(w, r, limit) {
		return r
	}
	own := *r
	own.Body = &hearing{ReadCloser: r.Body, conn: http.NewResponseController(w), limit: limit, server: r, copy: &own}
	return &own
}

// hurry bounds how long the server waits for a body, also one that is not read:
// it reads some of that by itself before it answers. False: there is no body,
// or no way to do it.
func hurry(w http.ResponseWriter, r *http.Request, limit time.Duration) bool {
	if limit == 0 || r.Body == nil || r.Body == http.NoBody {
		return false
	}
	return http.NewResponseController(w).SetReadDeadline(time.Now().Add(limit)) == nil
}

// Read implements io.Reader. At the end of the body the server takes the limit
// off: it reads on then, to notice that its client leaves.
func (h *hearing) Read(p []byte) (int, error) {
	_ = h.conn.SetReadDeadline(time.Now().Add(h.limit)) // it worked before
	n, err := h.ReadCloser.Read(p)
	switch {
	case errors.Is(err, io.EOF):
		h.trailers()
	case errors.Is(err, os.ErrDeadlineExceeded):
		err = errSilent
	}
	return n, err
}

// trailers hands over what came behind the body.
func (h *hearing) trailers() {
	if h.copy.Trailer == nil {
		h.copy.Trailer = h.server.Trailer
		return
	}
	for name, values := range h.server.Trailer {
		h.copy.Trailer[name] = values
	}
}
