// Package upstream sends requests to the service that the proxy protects. It never
// sends a request twice, and it knows whether a failed request was sent.
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
	// ClientHost gives the upstream the Host that the client sent. Without it
	// the upstream gets the host of URL.
	ClientHost bool
	// TrustForwarded passes incoming X-Forwarded-* headers on. Without it the
	// proxy replaces them.
	TrustForwarded bool
	// Protected are the canonical names of headers that decide the tenant or the
	// key of a request. A trailer must not have such a name. Nil: none.
	Protected map[string]bool
	// Idle is how long an idle connection is kept. Zero: without limit.
	Idle time.Duration
	// Log receives errors. Nil: slog.Default().
	Log *slog.Logger
}

// Upstream is the service that the proxy protects. Safe for concurrent use.
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
	protocols.SetHTTP1(true)  // HTTP/2 repeats requests by itself
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
		DisableCompression:  true, // the client's Accept-Encoding applies
		Protocols:           protocols,
	}
	u.proxy = &httputil.ReverseProxy{
		Rewrite:        u.rewrite,
		Transport:      &sender{base: u.base},
		ModifyResponse: onAnswer,
		ErrorHandler:   u.onFailure,
		BufferPool:     &buffers{},
		ErrorLog:       slog.NewLogLogger(o.Log.Handler(), slog.LevelWarn),
	}
	return u
}

// Close closes the idle connections.
func (u *Upstream) Close() { u.base.CloseIdleConnections() }

// Handler sends requests to the upstream. A request with a key must end within
// the timeout. For any other request the answer must begin within the timeout
// after the last bytes of the client. With keep5xx a 5xx answer is a result,
// unless its Semel-Result header says otherwise.
func (u *Upstream) Handler(timeout time.Duration, keep5xx bool) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if _, keyed := semel.FromContext(r.Context()); keyed {
			ctx, cancel := context.WithTimeout(r.Context(), timeout)
			defer cancel()
			if keep5xx {
				ctx = context.WithValue(ctx, keep5xxKey{}, true)
			}
			u.proxy.ServeHTTP(answerWriter{w, nil}, r.WithContext(ctx))
			return
		}
		shareTrailers(r)
		// The upstream may begin its answer before it has the whole body. Without
		// full duplex net/http would then read and discard the rest of the body.
		_ = http.NewResponseController(w).EnableFullDuplex() // an error means that the connection is full duplex anyway
		r, timer, stop := startTimer(w, r, timeout)
		defer stop()
		u.proxy.ServeHTTP(answerWriter{w, timer}, r)
	})
}

// keep5xxKey marks the context of a request whose 5xx answers are results. Only
// answers of the upstream count: the proxy's own 502 or 504 is no result.
type keep5xxKey struct{}

// buffers pools the buffers that copy answers, which saves an allocation each.
type buffers struct{ pool sync.Pool }

func (b *buffers) Get() []byte {
	if p, ok := b.pool.Get().(*[]byte); ok {
		return *p
	}
	return make([]byte, bufferSize)
}

func (b *buffers) Put(p []byte) { b.pool.Put(&p) }
