package semelhttp

import (
	"context"
	"fmt"
	"io"
	"net/http"
	"slices"
	"time"
)

// Transport is a http.RoundTripper that makes requests safe to repeat, and
// repeats them: each gets an idempotency key, the same for all its attempts.
// Safe for concurrent use, if its base is. Make one with NewTransport.
//
// The server is what drops a repeat, by the key. To one that does not know the
// header each attempt is a request of its own, and may take effect: use a
// Transport only where keys are promised to count.
//
// The key is the one in the request's header, else WithKey's, else, inside a
// handler that Semel runs, there must be one: ErrNoKey; else it is new and
// random. A key that has to survive a crash of this process is the caller's to
// make and keep.
//
// Sent again are requests that got no answer, or 425, 429, 502, 503, 504, or a
// 409 with a Retry-After or the code in_progress: after what Retry-After says,
// else after a growing pause, until MaxAttempts or the end of the context. An
// answer that is a replay, or says that the outcome is unknown, is final. The
// last answer or error is returned as it came.
//
// Requests without a key, such as GET, go to the base as they are.
type Transport struct {
	base http.RoundTripper
	opt  TransportOptions
}

// NewTransport makes a Transport. A nil base is http.DefaultTransport. It
// reports all that is wrong with o.
func NewTransport(base http.RoundTripper, o *TransportOptions) (*Transport, error) {
	if base == nil {
		base = http.DefaultTransport
	}
	t := &Transport{base: base, opt: o.withDefaults()}
	if err := t.opt.validate(); err != nil {
		return nil, err
	}
	return t, nil
}

// RoundTrip implements http.RoundTripper.
func (t *Transport) RoundTrip(r *http.Request) (*http.Response, error) {
	if len(r.Header[t.opt.KeyHeader]) == 0 && !slices.Contains(t.opt.Methods, r.Method) {
		return t.base.RoundTrip(r)
	}
	key, has, err := t.keyOf(r)
	if err != nil {
		closeBody(r)
		return nil, err
	}
	bodies, err := newBodies(r, t.opt.MaxBody, t.opt.MaxAttempts)
	if err != nil {
		return nil, err
	}
	defer bodies.close()
	for n := 1; ; n++ {
		out := r.Clone(r.Context())
		out.Trailer = r.Trailer // the caller sets the values while the body is read
		if out.Header == nil {
			out.Header = http.Header{}
		}
		if !has {
			out.Header[t.opt.KeyHeader] = []string{key}
		}
		if out.Body, err = bodies.next(); err != nil {
			return nil, fmt.Errorf("semelhttp: the request body for attempt %d: %w", n, err)
		}
		out.ContentLength = bodies.size
		NoResend(out)
		resp, err := t.base.RoundTrip(out)
		if n == t.opt.MaxAttempts {
			return resp, err
		}
		after, retry := again(r.Context(), resp, err)
		wait := t.opt.pause(n, after)
		if !retry || after > t.opt.MaxRetryAfter || !fits(r.Context(), wait) {
			return resp, err
		}
		drain(resp)
		if err := sleep(r.Context(), wait); err != nil {
			return nil, err
		}
	}
}

// CloseIdleConnections passes on to the base, if it has any.
func (t *Transport) CloseIdleConnections() {
	if c, ok := t.base.(interface{ CloseIdleConnections() }); ok {
		c.CloseIdleConnections()
	}
}

func closeBody(r *http.Request) {
	if r.Body != nil {
		_ = r.Body.Close() // nothing was written to it
	}
}

// drain lets the connection be used again, if that costs little.
func drain(resp *http.Response) {
	const most = 64 << 10
	if resp == nil {
		return
	}
	_, _ = io.CopyN(io.Discard, resp.Body, most) // only for the connection's sake
	_ = resp.Body.Close()
}

// fits reports whether the context lasts longer than a pause: if not, the
// answer there is tells more than the end of the context.
func fits(ctx context.Context, d time.Duration) bool {
	deadline, ok := ctx.Deadline()
	return !ok || time.Until(deadline) > d
}

func sleep(ctx context.Context, d time.Duration) error {
	t := time.NewTimer(d)
	defer t.Stop()
	select {
	case <-ctx.Done():
		return context.Cause(ctx)
	case <-t.C:
		return nil
	}
}
