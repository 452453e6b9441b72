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

// errNotSent is a request of which no byte has left this process, and none
// will.
type errNotSent struct{ error }

func (e errNotSent) Unwrap() error { return e.error }

// conn is a connection that can tell whether anything was sent on it. That no
// trace hook can: they are called before the bytes leave, and by another
// goroutine than the one that sees the request fail.
type conn struct {
	net.Conn

	mu     sync.Mutex
	writes int  // that were begun
	sealed bool // nothing more is sent
}

// Write implements net.Conn.
func (c *conn) Write(p []byte) (int, error) {
	c.mu.Lock()
	if c.sealed {
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

// seal ends all writing, and reports whether any began after the first n.
func (c *conn) seal(n int) (sent bool) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.sealed = true
	return c.writes > n
}

// sending is one request on its way.
type sending struct {
	mu     sync.Mutex
	conn   *conn
	before int  // writes on conn before this request
	doubt  bool // it got a connection that is not ours, or was sent on an earlier one
}

func (s *sending) gotConn(info httptrace.GotConnInfo) {
	c := info.Conn
	if t, ok := c.(*tls.Conn); ok {
		c = t.NetConn()
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.conn != nil && s.conn.seal(s.before) { // http.Transport tries a GET again on another one
		s.doubt = true
	}
	if s.conn, _ = c.(*conn); s.conn == nil {
		s.doubt = true
		return
	}
	s.before = s.conn.count()
}

// notSent reports whether nothing was sent, and sees to it that nothing will
// be. The request has failed.
func (s *sending) notSent() bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.conn == nil {
		return !s.doubt
	}
	return !s.conn.seal(s.before) && !s.doubt
}

// sender is the http.RoundTripper of the proxy.
type sender struct{ base *http.Transport }

// RoundTrip implements http.RoundTripper.
func (s *sender) RoundTrip(r *http.Request) (*http.Response, error) {
	ctx := r.Context()
	var way sending
	trace := &httptrace.ClientTrace{GotConn: way.gotConn, Got1xxResponse: ahead}
	res, err := s.base.RoundTrip(r.WithContext(httptrace.WithClientTrace(ctx, trace)))
	if b, ok := ctx.Value(beginKey{}).(*begin); ok && err == nil {
		b.end()
	}
	if err != nil && way.notSent() {
		err = errNotSent{err}
	}
	return res, reason(ctx, err)
}

// reason adds why a request was cancelled.
func reason(ctx context.Context, err error) error {
	if cause := context.Cause(ctx); err != nil && cause != nil && !errors.Is(err, cause) {
		return errors.Join(err, cause)
	}
	return err
}
