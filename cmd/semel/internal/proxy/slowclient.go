package proxy

import (
	"net/http"
	"time"
)

// writePart is the largest part of an answer, in bytes, that has to reach the client
// within the write timeout.
const writePart = 64 << 10

// timedWriter limits how long a client may take nothing of its answer.
type timedWriter struct {
	http.ResponseWriter
	conn  *http.ResponseController
	limit time.Duration
	set   time.Time // the time of the last change of the deadline; zero: an earlier answer may have set one
}

// limitWrites returns w with a limit. The caller has to call end when the handler
// has returned. Zero: no limit.
func limitWrites(w http.ResponseWriter, r *http.Request, limit time.Duration) (_ http.ResponseWriter, end func()) {
	if limit == 0 {
		return w, func() {}
	}
	t := &timedWriter{ResponseWriter: w, conn: http.NewResponseController(w), limit: limit}
	if len(r.Header["Expect"]) > 0 { // the server itself writes "100 Continue"
		t.extend()
	}
	return t, t.extend // the server writes the last part of the answer after the handler
}

// extend sets the deadline of the next write, unless that was done just now.
func (t *timedWriter) extend() {
	if now := time.Now(); t.set.IsZero() || now.Sub(t.set) > t.limit/16 {
		t.set = now
		_ = t.conn.SetWriteDeadline(now.Add(t.limit + t.limit/16)) // a connection without deadlines has no limit
	}
}

// Write implements http.ResponseWriter.
func (t *timedWriter) Write(p []byte) (n int, err error) {
	for {
		part := p[n:min(n+writePart, len(p))]
		t.extend()
		m, err := t.ResponseWriter.Write(part)
		if n += m; err != nil || n >= len(p) {
			return n, err
		}
	}
}

// WriteHeader implements http.ResponseWriter.
func (t *timedWriter) WriteHeader(status int) {
	if status < http.StatusOK { // it is sent at once
		t.extend()
	}
	t.ResponseWriter.WriteHeader(status)
}

// FlushError implements the flusher of http.ResponseController.
func (t *timedWriter) FlushError() error {
	t.extend()
	return t.conn.Flush()
}

// Unwrap lets http.ResponseController reach the server's writer.
func (t *timedWriter) Unwrap() http.ResponseWriter { return t.ResponseWriter }
