package proxy

import (
	"context"
	"errors"
	"io"
	"net/http"
	"os"
	"time"

	"github.com/semel-go/semel/cmd/semel/internal/limit"
)

// errBodyTimeout reports a client that stopped sending in the middle of a body.
var errBodyTimeout = errors.New("the client stopped sending its request body")

// A client cannot hold a request by a byte now and then: a body must come within
// slowPauses times the limit of its pauses, and a second more for each slowest bytes.
const (
	slowest    = 1 << 10
	slowPauses = 5
)

// timedBody limits each pause of a client that sends its body, and its average
// rate. It counts the bytes, because the proxy holds them: it reads the body before
// it claims the key or sends anything to the upstream.
type timedBody struct {
	io.ReadCloser
	ctx   context.Context //nolint:containedctx // it ends all reads: a stop must not wait for a silent client
	stop  func() bool     // ends the watch of ctx; nil: nothing was read
	conn  *http.ResponseController
	visit *limit.Visit
	limit time.Duration // 0: none
	begun time.Time
	got   int64 // bytes
	// net/http writes the trailers into its own request, not into a copy with
	// another body. The body of its own request must stay in place, because
	// otherwise net/http does not know whether to send "100 Continue".
	server, copy *http.Request
}

// limitPauses returns r with a timedBody and the context. The caller has to call end when the
// handler has returned.
func limitPauses(ctx context.Context, w http.ResponseWriter, r *http.Request, pause time.Duration, v *limit.Visit) (own *http.Request, end func()) {
	own = r.WithContext(ctx)
	if r.Body == nil || r.Body == http.NoBody {
		return own, func() {}
	}
	setBodyDeadline(w, r, pause)
	b := &timedBody{ReadCloser: r.Body, ctx: ctx, conn: http.NewResponseController(w), visit: v, limit: pause, begun: time.Now(), server: r, copy: own}
	own.Body = b
	return own, b.end
}

// end ends the watch of the context.
func (b *timedBody) end() {
	if b.stop != nil {
		b.stop()
	}
}

// setBodyDeadline limits how long the server waits for the next part of a body.
// The limit also counts for a body that no handler reads, because the server
// reads a part of such a body before it answers. It returns false if there is no
// body, or if the connection takes no deadline.
func setBodyDeadline(w http.ResponseWriter, r *http.Request, pause time.Duration) bool {
	if pause == 0 || r.Body == nil || r.Body == http.NoBody {
		return false
	}
	return http.NewResponseController(w).SetReadDeadline(time.Now().Add(pause)) == nil
}

// Read implements io.Reader. At the end of the body the server removes the
// deadline, because it reads on to notice a client that hangs up.
func (b *timedBody) Read(p []byte) (int, error) {
	if b.limit > 0 {
		_ = b.conn.SetReadDeadline(b.deadline(time.Now())) // a connection without deadlines has no limit
	}
	if b.stop == nil { // a read that waits ignores the context
		b.stop = context.AfterFunc(b.ctx, func() { _ = b.conn.SetReadDeadline(time.Now()) })
	}
	if b.ctx.Err() != nil {
		return 0, errBodyTimeout
	}
	n, err := b.ReadCloser.Read(p)
	b.got += int64(n)
	if err != nil {
		b.end() // the server reads on
	}
	if full := b.visit.Spool(n); full != nil {
		return n, full
	}
	switch {
	case errors.Is(err, io.EOF):
		b.trailers()
	case errors.Is(err, os.ErrDeadlineExceeded):
		err = errBodyTimeout
	}
	return n, err
}

// deadline is when the next part of the body must have come.
func (b *timedBody) deadline(now time.Time) time.Time {
	end := now.Add(b.limit)
	if all := b.begun.Add(slowPauses*b.limit + time.Duration(b.got/slowest)*time.Second); all.Before(end) {
		return all
	}
	return end
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
