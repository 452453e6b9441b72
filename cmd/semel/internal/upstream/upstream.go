// Package upstream sends requests to the service that the proxy protects. It never
// sends a request twice, and it knows whether a failed request was sent.
package upstream

import (
	"context"
	"errors"
	"log"
	"log/slog"
	"net/http"
	"net/http/httputil"
	"net/url"
	"strings"
	"sync"
	"time"

	"github.com/semel-go/semel"
	"github.com/semel-go/semel/cmd/semel/internal/input"
	"github.com/semel-go/semel/cmd/semel/internal/tlsfile"
	"github.com/semel-go/semel/semelhttp"
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
	// key of a request. A trailer must not have such a name, with hyphens or underscores.
	// Nil: none.
	Protected map[string]bool
	// Idle is how long an idle connection is kept. Zero: without limit.
	Idle time.Duration
	// RefusalOrigins are the origins whose pages may read the proxy's own answers.
	RefusalOrigins []string
	// TLS has the files for https. Nil: the authorities of the system.
	TLS *tlsfile.Source
	// HashedKeys is true if the store, and so the reconcile hook, has the hashes of keys.
	// The upstream gets the hash in KeyHashHeader.
	HashedKeys bool
	// Log receives errors. Nil: slog.Default().
	Log *slog.Logger
}

// Upstream is the service that the proxy protects. Safe for concurrent use.
type Upstream struct {
	opt       Options
	protected map[string]bool // Options.Protected, hyphened
	base      *http.Transport
	proxy     *httputil.ReverseProxy

	warnOfEnd sync.Once // see endsWithConnection

	stopped context.Context //nolint:containedctx // it ends all requests with a key: see Stop
	stop    context.CancelFunc
}

// bufferSize is the size of the buffers that copy answers.
const bufferSize = 32 << 10

// New makes an Upstream. It does no I/O. Close it.
func New(o Options) *Upstream {
	if o.Log == nil {
		o.Log = slog.Default()
	}
	u := &Upstream{opt: o, protected: map[string]bool{}}
	for name := range o.Protected {
		u.protected[hyphened(name)] = true
	}
	u.stopped, u.stop = context.WithCancel(context.Background())
	u.base = newTransport(o.Idle, o.TLS)
	u.proxy = &httputil.ReverseProxy{
		Rewrite:        u.rewrite,
		Transport:      &sender{base: u.base},
		ModifyResponse: u.onAnswer,
		ErrorHandler:   u.onFailure,
		BufferPool:     &buffers{},
		ErrorLog:       log.New(warnings{o.Log}, "", 0),
	}
	return u
}

// warnings logs each text of httputil.ReverseProxy as a warning, without a part of an answer.
type warnings struct{ log *slog.Logger }

// Write implements io.Writer.
func (w warnings) Write(text []byte) (int, error) {
	w.log.Warn(input.WithoutQuotes(errors.New(strings.TrimSpace(string(text)))).Error())
	return len(text), nil
}

// Close closes the idle connections.
func (u *Upstream) Close() { u.base.CloseIdleConnections() }

// Stop gives up all requests with a key that have no answer yet. Their callers are
// answered as if the upstream's answer was lost.
func (u *Upstream) Stop() { u.stop() }

// Answers says what some answers of the upstream mean, besides semelhttp.Judge. Only
// answers of the upstream count: the proxy's own 502 or 504 is no result.
type Answers struct {
	Keep5xx  bool  // a 5xx answer is a result
	Final    []int // statuses that are results
	NoEffect []int // statuses that say that nothing was done
}

// answersKey finds the Answers of a request with a key, or of an observed one, in its
// context.
type answersKey struct{}

// Handler sends requests to the upstream. A request with a key must end within
// the timeout. For any other request the answer must begin within the timeout
// after the last bytes of the client.
func (u *Upstream) Handler(timeout time.Duration, answers Answers) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if _, keyed := semel.FromContext(r.Context()); keyed {
			ctx, cancel := context.WithTimeout(context.WithValue(r.Context(), answersKey{}, &answers), timeout)
			defer cancel()
			defer context.AfterFunc(u.stopped, cancel)()
			u.forward(w, r.WithContext(ctx))
			return
		}
		ShareTrailers(r)
		if observedFrom(r.Context()) != nil {
			r = r.WithContext(context.WithValue(r.Context(), answersKey{}, &answers))
		}
		// The upstream may begin its answer before it has the whole body. Without
		// full duplex net/http would then read and discard the rest of the body.
		_ = http.NewResponseController(w).EnableFullDuplex() // an error means that the connection is full duplex anyway
		r, timer, stop := startTimer(w, r, timeout)
		defer stop()
		u.proxy.ServeHTTP(answerWriter{w, r, timer}, r)
	})
}

// forward sends a request with a key. httputil.ReverseProxy panics if the upstream
// dies inside its body. If nothing was sent to the client yet, the client gets 502 or
// 504 instead of half an answer.
func (u *Upstream) forward(w http.ResponseWriter, r *http.Request) {
	defer func() {
		p := recover()
		if p == nil {
			return
		}
		if p != http.ErrAbortHandler || !semelhttp.Broken(r) { //nolint:errorlint // it is this very value
			panic(p)
		}
		u.onFailure(w, r, withCause(r.Context(), errBroken))
	}()
	u.proxy.ServeHTTP(answerWriter{w, r, nil}, r)
}

// errBroken reports an upstream that broke off in the middle of its answer.
var errBroken = errors.New("the answer broke off")

// buffers pools the buffers that copy answers, which saves an allocation each.
type buffers struct{ pool sync.Pool }

func (b *buffers) Get() []byte {
	if p, ok := b.pool.Get().(*[]byte); ok {
		return *p
	}
	return make([]byte, bufferSize)
}

func (b *buffers) Put(p []byte) { b.pool.Put(&p) }
