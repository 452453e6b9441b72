package upstream

import (
	"context"
	"crypto/tls"
	"errors"
	"net"
	"net/http"
	"net/http/httptrace"
	"sync"
)

// errNotSent wraps the error of a request of which no byte was sent, or will be.
type errNotSent struct{ error }

func (e errNotSent) Unwrap() error { return e.error }

// errRefused wraps the error of a request that net/http itself refuses, for example
// because of a character in a header. It is always in an errNotSent.
type errRefused struct{ error }

func (e errRefused) Unwrap() error { return e.error }

// conn is a connection that counts its writes, and so knows whether anything was
// sent. The hooks of httptrace cannot tell: they run before the bytes leave, and
// on another goroutine than the one that sees the error.
type conn struct {
	net.Conn

	mu     sync.Mutex
	writes int  // writes that have begun
	closed bool // further writes fail
}

// Write implements net.Conn.
func (c *conn) Write(p []byte) (int, error) {
	c.mu.Lock()
	if c.closed {
		c.mu.Unlock()
		return 0, net.ErrClosed
	}
	c.writes++
	c.mu.Unlock()
	return c.Conn.Write(p)
}

func (c *conn) count() int {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.writes
}

// stopWrites makes further writes fail, and reports whether there were more than
// n writes.
func (c *conn) stopWrites(n int) (sent bool) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.closed = true
	return c.writes > n
}

// transmission follows one request through the connections that it gets.
type transmission struct {
	accepted bool // http.Transport has checked the request, and asks for a connection

	mu     sync.Mutex
	conn   *conn
	before int  // writes on conn before this request
	doubt  bool // the request may have been sent on an earlier or an unknown connection
}

// getConn runs in the goroutine of RoundTrip.
func (s *transmission) getConn(string) { s.accepted = true }

func (s *transmission) gotConn(info httptrace.GotConnInfo) {
	c := info.Conn
	if t, ok := c.(*tls.Conn); ok {
		c = t.NetConn()
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.conn != nil && s.conn.stopWrites(s.before) { // http.Transport tries a GET again on another connection
		s.doubt = true
	}
	if s.conn, _ = c.(*conn); s.conn == nil {
		s.doubt = true
		return
	}
	s.before = s.conn.count()
}

// notSent reports whether nothing was sent, and prevents that anything is sent
// later. Call it after the request has failed.
func (s *transmission) notSent() bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.conn == nil {
		return !s.doubt
	}
	return !s.conn.stopWrites(s.before) && !s.doubt
}

// sender is the http.RoundTripper of the proxy. It wraps an error in errNotSent if
// no byte was sent.
type sender struct{ base *http.Transport }

// RoundTrip implements http.RoundTripper.
func (s *sender) RoundTrip(r *http.Request) (*http.Response, error) {
	ctx := r.Context()
	var sent transmission
	trace := &httptrace.ClientTrace{GetConn: sent.getConn, GotConn: sent.gotConn, Got1xxResponse: onInformational}
	res, err := s.base.RoundTrip(r.WithContext(httptrace.WithClientTrace(ctx, trace)))
	if b, ok := ctx.Value(timerKey{}).(*answerTimer); ok && err == nil {
		b.stop()
	}
	if err != nil && !sent.accepted && ctx.Err() == nil {
		err = errRefused{err}
	}
	if err != nil && sent.notSent() {
		err = errNotSent{err}
	}
	return res, withCause(ctx, err)
}

// withCause adds the reason for which a request was cancelled.
func withCause(ctx context.Context, err error) error {
	if cause := context.Cause(ctx); err != nil && cause != nil && !errors.Is(err, cause) {
		return errors.Join(err, cause)
	}
	return err
}
