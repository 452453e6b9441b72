// Package proxy implements semel proxy, a reverse proxy that makes each request
// with an idempotency key take effect once in the upstream.
package proxy

import (
	"fmt"
	"log/slog"
	"net/http"
	"strings"
	"sync/atomic"

	"github.com/semel-go/semel"
	"github.com/semel-go/semel/cmd/semel/internal/config"
	"github.com/semel-go/semel/cmd/semel/internal/hook"
	"github.com/semel-go/semel/cmd/semel/internal/limit"
	"github.com/semel-go/semel/cmd/semel/internal/metrics"
	"github.com/semel-go/semel/cmd/semel/internal/observe"
	"github.com/semel-go/semel/cmd/semel/internal/scope"
	"github.com/semel-go/semel/cmd/semel/internal/tlsfile"
	"github.com/semel-go/semel/cmd/semel/internal/upstream"
	"github.com/semel-go/semel/internal/httpname"
	"github.com/semel-go/semel/store"
)

// Parts are the dependencies of a Proxy. Secrets, the files for TLS and TempDir are
// optional. The Proxy closes none of them.
type Parts struct {
	Config  *config.Config
	Store   store.Store // not used if Config.Observe is set
	Rule    scope.Rule
	Finder  *scope.Finder
	Secrets []semel.Secret
	// HashKeys is semel.Options.HashKeys.
	HashKeys []byte
	Log      *slog.Logger
	// The files for TLS towards the upstream and the hooks. Nil: the authorities of
	// the system.
	UpstreamTLS, HookTLS *tlsfile.Source
	// TempDir is the folder for large request bodies. Empty: os.TempDir.
	TempDir string
}

// Proxy is a reverse proxy in front of one service. Safe for concurrent use.
// Make it with New, and close it.
type Proxy struct {
	Parts

	up         *upstream.Upstream
	reconcile  *hook.Hook // nil: no reconcile-url
	authorize  *hook.Hook // nil: no authorize-url
	router     *router
	counts     metrics.Registry
	background *metrics.Calls // events of sweeps and reconciliation
	sweeps     metrics.Sweeps
	guards     []*currentGuard // of all routes
	observer   *observer       // nil: the proxy does not observe
	events     *slog.Logger    // Log; an observer's is silent, because its calls are of twins

	paced    pacedStore    // Store, for the runs of requests
	draining chan struct{} // closed when Serve begins to stop
	inFlight atomic.Int64
}

// New makes a Proxy. It does no I/O.
func New(parts Parts) (*Proxy, error) {
	p := &Proxy{Parts: parts, draining: make(chan struct{}), events: parts.Log}
	if parts.Config.Observe {
		memory := observe.NewMemory(parts.Config.ObserveKeys)
		p.Config, p.Store, p.events = observing(parts.Config), memory, slog.New(slog.DiscardHandler)
		p.observer = newObserver(memory, parts.Log)
	}
	c := p.Config
	p.paced = newPacedStore(p.counts.Store(p.Store))
	protected := protectedNames(c.KeyHeaders, p.Rule.Headers(), c.Protected)
	p.router = &router{protected: protected, lookalikes: lookalikesOf(protected), keyHeaders: httpname.Canonical(c.KeyHeaders), scope: p.Rule, maxBody: c.MaxBody, bodyTimeout: c.BodyTimeout,
		writeTimeout: c.WriteTimeout, limits: limit.New(c.Limits, nil), warnOfLimit: p.warnOfLimit, peers: newPeers(&c.Connections), upgrades: c.Upgrades, origins: c.RefusalOrigins}
	if p.observer != nil {
		p.observer.router = p.router
	}
	p.up = upstream.New(upstream.Options{
		URL: c.Upstream, ClientHost: c.ClientHost, TrustForwarded: c.TrustForwarded, Protected: p.router.protected, Idle: c.UpstreamIdle, TLS: parts.UpstreamTLS, Log: parts.Log,
		RefusalOrigins: c.RefusalOrigins, HashedKeys: parts.HashKeys != nil,
	})
	if c.ReconcileURL != nil {
		p.reconcile = hook.New(c.ReconcileURL, c.ReconcileTimeout, parts.HookTLS)
	}
	if c.AuthorizeURL != nil {
		p.authorize = hook.New(c.AuthorizeURL, c.AuthorizeTimeout, parts.HookTLS)
		p.authorize.Protect(p.router.protected)
		if c.TrustForwarded {
			p.authorize.TrustForwarded()
		}
	}
	if err := p.routes(); err != nil {
		p.Close()
		return nil, err
	}
	p.background = p.counts.Calls("", "(background)")
	p.gauges()
	return p, nil
}

// Close closes the idle connections. Requests in flight continue.
func (p *Proxy) Close() {
	if p.observer != nil {
		p.observer.close()
	}
	p.up.Close()
	for _, h := range []*hook.Hook{p.reconcile, p.authorize} {
		if h != nil {
			h.Close()
		}
	}
}

// Handler serves the requests of clients.
func (p *Proxy) Handler() http.Handler {
	if p.observer != nil {
		return p.observer
	}
	return p.router
}

// Observed is what the proxy would have done so far; nil if it does not observe.
func (p *Proxy) Observed() *observe.Report {
	if p.observer == nil {
		return nil
	}
	return p.observer.counts.Report()
}

// routes gives the router a route for each rule and one for all other requests.
func (p *Proxy) routes() error {
	c := p.Config
	rest, err := p.route(&c.Rest)
	if err != nil {
		return err
	}
	p.router.rest = rest
	if len(c.Rules) == 0 {
		return nil
	}
	p.router.rules, p.router.subtrees = http.NewServeMux(), http.NewServeMux()
	rooted, routes := false, make([]*route, len(c.Rules))
	for i := range c.Rules {
		r, err := p.route(&c.Rules[i])
		if err != nil {
			return fmt.Errorf("rules[%d]: %w", i, err)
		}
		match := c.Rules[i].Match
		routes[i] = r
		p.router.rules.Handle(match, r) // the configuration has checked the pattern
		if strings.HasSuffix(match, "/") || strings.HasSuffix(match, "...}") {
			p.router.subtrees.Handle(match, r)
		} else {
			r.specific = true
		}
		rooted = rooted || match == "/"
	}
	p.router.variants = newVariants(c.Rules, routes)
	if !rooted {
		p.router.rules.Handle("/", rest)
		p.router.subtrees.Handle("/", rest)
	}
	return nil
}
