package semelhttp

import (
	"context"
	"crypto/rand"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"net/http"
	"slices"
	"strings"
	"time"

	"github.com/semel-go/semel"
)

// Transport is a http.RoundTripper that gives each POST and PATCH an idempotency key and
// repeats the request with the same key and body until it gets a final answer. Other
// requests go to the base unchanged. Make one with NewTransport. Safe for concurrent use,
// if its base is.
//
// A server that ignores the header takes each attempt for a new request, so use a Transport
// only for servers that promise to recognize repeats by their keys.
//
// The key comes from the request's header, or else from [WithKey], or else it is new
// and random; inside a handler that Semel runs, a missing key is [ErrNoKey]. If a key
// has to survive a crash of this process, the caller makes and keeps it.
//
// A request is repeated if it got no answer, 408, 425, 429, 502, 503, 504, another 4xx
// with a Retry-After, or 409 with the code in_progress, up to MaxAttempts and until its
// context ends. While the first request runs, asking again is no attempt.
type Transport struct {
	base http.RoundTripper
	opt  TransportOptions
}

// NewTransport makes a Transport. If base is nil, it uses http.DefaultTransport. The
// error names every wrong option.
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
	sent := keyLines(r.Header, t.opt.KeyHeader)
	if len(sent) == 0 && !slices.ContainsFunc(t.opt.Methods, func(m string) bool { return strings.EqualFold(m, r.Method) }) {
		return t.base.RoundTrip(r)
	}
	key, hasKey, err := t.keyOf(r, sent)
	if err != nil {
		closeBody(r)
		return nil, err
	}
	bodies, err := newBodies(r, t.opt.MaxBody, t.opt.MaxAttempts)
	if err != nil {
		return nil, err
	}
	defer bodies.close()
	var busy time.Duration // how long the Transport has waited for a run in progress
	for n := 1; ; n++ {
		out := r.Clone(r.Context())
		out.Trailer = r.Trailer // the caller sets the values while the body is read
		if out.Header == nil {
			out.Header = http.Header{}
		}
		if !hasKey {
			out.Header[t.opt.KeyHeader] = []string{key}
		}
		if out.Body, err = bodies.next(); err != nil {
			return nil, fmt.Errorf("semelhttp: the request body for attempt %d: %w", n, err)
		}
		out.ContentLength = bodies.size
		NoResend(out)
		resp, err := t.base.RoundTrip(out)
		after, retry := retryable(r.Context(), resp, err)
		wait := t.opt.pause(n, after)
		if retry && after > 0 && t.opt.MaxAttempts > 1 && busy+wait <= t.opt.MaxRetryAfter && isBusy(resp) {
			busy += wait
			n-- // to ask again is no attempt, because the first request is still running
		} else if n >= t.opt.MaxAttempts {
			return resp, err
		}
		if !retry || after > t.opt.MaxRetryAfter || !lasts(r.Context(), wait) {
			return resp, err
		}
		drain(resp)
		if err := sleep(r.Context(), wait); err != nil {
			return nil, err
		}
	}
}

// CloseIdleConnections calls the method of the same name of the base, if it has one.
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

// drain reads a short rest of the body, so that the connection can be used again.
// A rest that does not come in time costs the connection.
func drain(resp *http.Response) {
	const maxDrained = 64 << 10 // bytes
	const drainTime = 500 * time.Millisecond
	if resp == nil {
		return
	}
	late := time.AfterFunc(drainTime, func() { _ = resp.Body.Close() }) // which ends the read
	defer late.Stop()
	_, _ = io.CopyN(io.Discard, resp.Body, maxDrained) // an error only costs the connection
	_ = resp.Body.Close()
}

// lasts reports whether ctx lasts longer than d. If not, the present answer tells the
// caller more than the end of its context.
func lasts(ctx context.Context, d time.Duration) bool {
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

// ErrNoKey means that a handler which Semel runs has made a request without a key.
// A random key would differ in the handler's next attempt, and the request could
// take effect twice. Give the request a derived key:
// WithKey(ctx, x.DownstreamKey("name of the step")).
var ErrNoKey = errors.New("semelhttp: a request made by a handler needs a key; use WithKey(ctx, x.DownstreamKey(step))")

type keyKey struct{}

// WithKey gives a key to the request that is made with the returned context; a
// Transport sends it. Use it with clients that set no headers, and for one request
// only, because a server takes two requests with one key for one operation.
func WithKey(ctx context.Context, key string) context.Context {
	return context.WithValue(ctx, keyKey{}, key)
}

// keyOf returns the value for the request's key header. HasKey says that the request
// has the header already.
func (t *Transport) keyOf(r *http.Request, sent []string) (value string, hasKey bool, err error) {
	switch len(sent) {
	case 0:
	case 1:
		return sent[0], true, nil
	default:
		return "", false, fmt.Errorf("semelhttp: the request has %d keys in the header %s; send one", len(sent), t.opt.KeyHeader)
	}
	key, ok := r.Context().Value(keyKey{}).(string)
	if !ok {
		if _, insideHandler := semel.FromContext(r.Context()); insideHandler {
			return "", false, ErrNoKey
		}
		key = newUUID()
	}
	if err := checkKey(key); err != nil {
		return "", false, fmt.Errorf("semelhttp: the request's idempotency key: %w", err)
	}
	if t.opt.Bare {
		return key, false, nil
	}
	return quoteKey(key), false, nil
}

// keyLines returns the values of a header in each spelling of its name, because
// net/http sends a name that is not canonical as it is.
func keyLines(h http.Header, name string) (lines []string) {
	for spelling, values := range h {
		if len(spelling) == len(name) && strings.EqualFold(spelling, name) {
			lines = append(lines, values...)
		}
	}
	return lines
}

// newUUID is a UUID of version 7 (RFC 9562): the time in milliseconds and 74 random
// bits. Such keys are ordered, so a server's index of them grows at its end.
func newUUID() string {
	var u [16]byte
	_, _ = rand.Read(u[6:])                                                  // it never fails; crypto/rand ends the process instead
	ms := binary.BigEndian.AppendUint64(nil, uint64(time.Now().UnixMilli())) //nolint:gosec // after 1970
	copy(u[:6], ms[2:])
	u[6], u[8] = u[6]&0x0f|0x70, u[8]&0x3f|0x80
	return fmt.Sprintf("%x-%x-%x-%x-%x", u[:4], u[4:6], u[6:8], u[8:10], u[10:])
}
