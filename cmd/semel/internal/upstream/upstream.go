// Package upstream sends requests to the one service behind the proxy: never
// twice, and with a clear answer to whether anything was sent.
package upstream

import (
	"context"
	"log/slog"
	"net"
	"net/http"
	"net/http/httputil"
	"net/url"
	"sync"
	"time"

	"github.com/semel-go/semel"
)

// Options configures an Upstream.
type Options struct {
	URL *url.URL
	// ClientHost: the upstream sees the Host that the client sent, not its own.
	ClientHost bool
	// TrustForwarded: X-Forwarded-* as they come in are true, and passed on.
	TrustForwarded bool
	// Protected are the canonical names of headers that must not come as
	// trailers: they decide whose request it is, and which. Nil: none.
	Protected map[string]bool
	// Idle is how long an idle connection is kept. Zero: without limit.
	Idle time.Duration
	// Log takes what goes wrong. Nil: slog.Default().
	Log *slog.Logger
}

// Upstream is the service behind the proxy. Safe for concurrent use.
type Upstream struct {
	opt   Options
	base  *http.Transport
	proxy *httputil.ReverseProxy
}

const (
	dialTimeout = 5 * time.Second
	maxIdle     = 512 // idle connections
	bufferSize  = 32 << 10
)

// New makes an Upstream. It does no I/O. Close it.
func New(o Options) *Upstream {
	if o.Log == nil {
		o.Log = slog.Default()
	}
	u := &Upstream{opt: o}
	dialer := &net.Dialer{Timeout: dialTimeout}
	protocols := &http.Protocols{}
	protocols.SetHTTP1(true)  // HTTP/2 has re-sendings of its own
	u.base = &http.Transport{ // no Proxy: the environment must not change the upstream
		DialContext: func(ctx context.Context, network, addr string) (net.Conn, error) {
			c, err := dialer.DialContext(ctx, network, addr)
			if err != nil {
				return nil, err
			}
			return &conn{Conn: c}, nil
		},
		TLSHandshakeTimeout: dialTimeout,
		MaxIdleConns:        maxIdle,
		MaxIdleConnsPerHost: maxIdle,
		IdleConnTimeout:     o.Idle,
		DisableCompression:  true, // the client's Accept-Encoding counts
		Protocols:           protocols,
	}
	u.proxy = &httputil.ReverseProxy{
		Rewrite:        u.rewrite,
		Transport:      &sender{base: u.base},
		ModifyResponse: received,
		ErrorHandler:   u.failed,
		BufferPool:     &buffers{},
		ErrorLog:       slog.NewLogLogger(o.Log.Handler(), slog.LevelWarn),
	}
	return u
}

// Close closes the idle connections.
func (u *Upstream) Close() { u.base.CloseIdleConnections() }

// Handler sends requests on. A request with a key has to be over within the
// timeout; of any other, the answer has to begin within it, counted from when
// the last bytes came from the client. With keep5xx an answer of 5xx is a
// result, too, unless it says of itself what it is.
func (u *Upstream) Handler(timeout time.Duration, keep5xx bool) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if _, keyed := semel.FromContext(r.Context()); keyed {
			ctx, cancel := context.WithTimeout(r.Context(), timeout)
			defer cancel()
			if keep5xx {
				ctx = context.WithValue(ctx, keep5xxKey{}, true)
			}
			u.proxy.ServeHTTP(asIs{w, nil}, r.WithContext(ctx))
			return
		}
		seesTrailers(r)
		// The upstream may begin its answer before it has the whole body. The
		// server would then read the rest itself, and away from the upstream.
		_ = http.NewResponseController(w).EnableFullDuplex() // it fails where that is so anyway
		r, b, end := bound(w, r, timeout)
		defer end()
		u.proxy.ServeHTTP(asIs{w, b}, r)
	})
}

// keep5xxKey finds whether answers of 5xx are results. It is asked of answers
// that have come, and not of every status that a client gets: for an answer
// that never came the proxy says 502 or 504, which is no result.
type keep5xxKey struct{}

// buffers spares an allocation for each answer.
type buffers struct{ pool sync.Pool }

func (b *buffers) Get() []byte {
	if p, ok := b.pool.Get().(*[]byte); ok {
		return *p
	}
	return make([]byte, bufferSize)
}

func (b *buffers) Put(p []byte) { b.pool.Put(&p) }
