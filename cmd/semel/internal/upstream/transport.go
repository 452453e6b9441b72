package upstream

import (
	"context"
	"errors"
	"net"
	"net/http"
	"time"

	"github.com/semel-go/semel/cmd/semel/internal/tlsfile"
)

const (
	dialTimeout = 5 * time.Second
	maxIdle     = 512 // idle connections
)

// newTransport makes a transport whose connections know whether anything was sent.
func newTransport(idle time.Duration, files *tlsfile.Source) *http.Transport {
	dialer := &net.Dialer{Timeout: dialTimeout}
	protocols := &http.Protocols{}
	protocols.SetHTTP1(true) // HTTP/2 repeats requests by itself
	dial := func(ctx context.Context, network, addr string) (net.Conn, error) {
		c, err := dialer.DialContext(ctx, network, addr)
		if err != nil {
			return nil, err
		}
		return &conn{Conn: c}, nil
	}
	base := &http.Transport{ // no Proxy: the environment must not change the upstream
		DialContext:         dial,
		TLSHandshakeTimeout: dialTimeout,
		MaxIdleConns:        maxIdle,
		MaxIdleConnsPerHost: maxIdle,
		IdleConnTimeout:     idle,
		DisableCompression:  true, // the client's Accept-Encoding applies
		Protocols:           protocols,
	}
	if files != nil {
		base.DialTLSContext = files.Dial(dial, dialTimeout)
	}
	return base
}

// NewTransport makes the transport of a program that sends requests of its own. The
// transport never sends a request twice by itself if semelhttp.NoResend has prepared it,
// and NotSent tells whether a failed request was sent. The files, which may be nil, are
// for TLS. CloseIdleConnections of an http.Client closes the idle connections.
func NewTransport(idle time.Duration, files *tlsfile.Source) http.RoundTripper {
	return &sender{base: newTransport(idle, files)}
}

// CloseIdleConnections is for http.Client.CloseIdleConnections.
func (s *sender) CloseIdleConnections() { s.base.CloseIdleConnections() }

// NotSent reports whether the error of a transport's request says that no byte of it was
// sent, and that none will be.
func NotSent(err error) bool {
	_, ok := errors.AsType[errNotSent](err)
	return ok
}

// Refused reports whether the error of a transport's request says that net/http takes no
// such request, wherever it goes. NotSent is true as well.
func Refused(err error) bool {
	_, ok := errors.AsType[errRefused](err)
	return ok
}
