package upstream

import (
	"context"
	"errors"
	"io"
	"net/http"
	"sync"
	"time"
)

// A client cannot hold a request by a byte now and then: the proxy waits for a whole body
// for slowPauses times the limit, and a second more for each slowest bytes. Bodies with a key
// have the same limit, of body-timeout.
const (
	slowest    = 1 << 10
	slowPauses = 5
)

// answerTimer limits how long the upstream may take to begin its answer. The time
// that the client needs to send its body does not count: each read of the body
// restarts the timer. All reads together have a limit of their own.
type answerTimer struct {
	io.ReadCloser // the client's body; nil: no body
	limit         time.Duration

	mu      sync.Mutex
	got     int64         // bytes of the body
	waited  time.Duration // for the client, in reads of the body
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
	out := r.WithContext(context.WithValue(ctx, timerKey{}, b))
	if r.Body != nil && r.Body != http.NoBody {
		b.ReadCloser, out.Body = r.Body, b
	} else {
		b.atEOF = true
	}
	b.timer = time.AfterFunc(limit, func() { b.giveUp(w, cancel) })
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
	case b.reading, !b.atEOF && b.left() <= 0:
		cancel(errBodyTimeout)
		_ = http.NewResponseController(w).SetReadDeadline(time.Now()) // a writer without a deadline has no connection to wait for
	default:
		cancel(context.DeadlineExceeded)
	}
}

// left is how much longer the proxy waits for the client. The caller holds the lock.
func (b *answerTimer) left() time.Duration {
	return slowPauses*b.limit + time.Duration(b.got/slowest)*time.Second - b.waited
}

// Read implements io.Reader.
func (b *answerTimer) Read(p []byte) (int, error) {
	b.mu.Lock()
	b.reading = true
	if left := b.left(); left < b.limit && !b.stopped {
		b.timer.Reset(max(left, 0))
	}
	b.mu.Unlock()
	begun := time.Now()
	n, err := b.ReadCloser.Read(p)
	b.mu.Lock()
	defer b.mu.Unlock()
	b.got, b.waited = b.got+int64(n), b.waited+time.Since(begun)
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
