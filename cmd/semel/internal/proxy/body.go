package proxy

import (
	"errors"
	"io"
	"net/http"
	"os"
	"time"
)

// errBodyTimeout reports a client that stopped sending in the middle of a body.
var errBodyTimeout = errors.New("the client stopped sending its request body")

// timedBody limits each pause of a client that sends its body. The proxy reads
// the body before it claims the key or sends anything to the upstream. The whole
// body may take any time.
type timedBody struct {
	io.ReadCloser
	conn  *http.ResponseController
	limit time.Duration
	// net/http writes the trailers into its own request, not into a copy with
	// another body. The body of its own request must stay in place, because
	// otherwise net/http does not know whether to send "100 Continue".
	server, copy *http.Request
}

// limitPauses returns r with a timedBody.
func limitPauses(w http.ResponseWriter, r *http.Request, limit time.Duration) *http.Request {
	if !setBodyDeadline(w, r, limit) {
		return r
	}
	own := *r
	own.Body = &timedBody{ReadCloser: r.Body, conn: http.NewResponseController(w), limit: limit, server: r, copy: &own}
	return &own
}

// setBodyDeadline limits how long the server waits for the next part of a body.
// The limit also counts for a body that no handler reads, because the server
// reads a part of such a body before it answers. It returns false if there is no
// body, or if the connection takes no deadline.
func setBodyDeadline(w http.ResponseWriter, r *http.Request, limit time.Duration) bool {
	if limit == 0 || r.Body == nil || r.Body == http.NoBody {
		return false
	}
	return http.NewResponseController(w).SetReadDeadline(time.Now().Add(limit)) == nil
}

// Read implements io.Reader. At the end of the body the server removes the
// deadline, because it reads on to notice a client that hangs up.
func (b *timedBody) Read(p []byte) (int, error) {
	_ = b.conn.SetReadDeadline(time.Now().Add(b.limit)) // setBodyDeadline has tried it
	n, err := b.ReadCloser.Read(p)
	switch {
	case errors.Is(err, io.EOF):
		b.trailers()
	case errors.Is(err, os.ErrDeadlineExceeded):
		err = errBodyTimeout
	}
	return n, err
}

// trailers copies the trailers to the request that the proxy uses.
func (b *timedBody) trailers() {
	if b.copy.Trailer == nil {
		b.copy.Trailer = b.server.Trailer
		return
	}
	for name, values := range b.server.Trailer {
		b.copy.Trailer[name] = values
	}
}
