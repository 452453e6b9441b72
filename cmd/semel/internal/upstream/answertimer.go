package upstream

import (
	"context"
	"errors"
	"io"
	"net/http"
	"sync"
	"time"
)

// answerTimer limits how long the upstream may take to begin its answer. The time
// that the client needs to send its body does not count: each read of the body
// restarts the timer.
type answerTimer struct {
	io.ReadCloser // the client's body; nil: no body
	limit         time.Duration

	mu      sync.Mutex
	timer   *time.Timer
	stopped bool // the answer has begun, or the request has failed
	reading bool // a read of the client's body is waiting
	atEOF   bool // the body was read to its end
}

// errBodyTimeout reports a client that stopped sending in the middle of a body.
var errBodyTimeout = errors.New("the client stopped sending its request body")

// timerKey finds the answerTimer of a request in its context.
type timerKey struct{}

// startTimer returns r with an answerTimer and a context that ends with it. The
// caller must call stop.
func startTimer(w http.ResponseWriter, r *http.Request, limit time.Duration) (_ *http.Request, _ *answerTimer, stop func()) {
	ctx, cancel := context.WithCancelCause(r.Context())
	b := &answerTimer{limit: limit}
	b.timer = time.AfterFunc(limit, func() { b.giveUp(w, cancel) })
	out := r.WithContext(context.WithValue(ctx, timerKey{}, b))
	if r.Body != nil && r.Body != http.NoBody {
		b.ReadCloser, out.Body = r.Body, b
	} else {
		b.atEOF = true
	}
	return out, b, func() {
		b.stop()
		cancel(nil)
	}
}

// giveUp ends the wait for the upstream, or for the client. A blocked read of the
// client's body ignores the context, so giveUp also sets a read deadline.
func (b *answerTimer) giveUp(w http.ResponseWriter, cancel context.CancelCauseFunc) {
	b.mu.Lock()
	defer b.mu.Unlock()
	switch {
	case b.stopped:
	case b.reading:
		cancel(errBodyTimeout)
		_ = http.NewResponseController(w).SetReadDeadline(time.Now()) // a writer without a deadline has no connection to wait for
	default:
		cancel(context.DeadlineExceeded)
	}
}

// Read implements io.Reader.
func (b *answerTimer) Read(p []byte) (int, error) {
	b.mu.Lock()
	b.reading = true
	b.mu.Unlock()
	n, err := b.ReadCloser.Read(p)
	b.mu.Lock()
	defer b.mu.Unlock()
	b.reading, b.atEOF = false, b.atEOF || errors.Is(err, io.EOF)
	if !b.stopped {
		b.timer.Reset(b.limit)
	}
	return n, err
}

// bodyRead reports whether the body was read to its end.
func (b *answerTimer) bodyRead() bool {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.atEOF
}

// stop removes the limit.
func (b *answerTimer) stop() {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.stopped = true
	b.timer.Stop()
}
