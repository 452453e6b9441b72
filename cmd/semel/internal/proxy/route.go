package proxy

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"slices"

	"github.com/semel-go/semel"
	"github.com/semel-go/semel/cmd/semel/internal/config"
	"github.com/semel-go/semel/cmd/semel/internal/limit"
	"github.com/semel-go/semel/cmd/semel/internal/metrics"
	"github.com/semel-go/semel/cmd/semel/internal/scope"
	"github.com/semel-go/semel/cmd/semel/internal/upstream"
	"github.com/semel-go/semel/internal/httpname"
	"github.com/semel-go/semel/semelhttp"
	"github.com/semel-go/semel/store"
)

// route handles the requests of one rule.
type route struct {
	http.Handler
	upstream    http.Handler  // sends requests to the service
	withoutKey  http.Handler  // counts a request as unprotected and sends it
	rule        *config.Route // for an observer
	methods     []string
	keyOptional bool // a request without a key passes
	fromBody    bool // a key can be derived from the body
	passThrough bool
	parks       bool
	specific    bool // its rule is for one path, and not for all below it
}

func (p *Proxy) route(r *config.Route) (*route, error) {
	next := p.up.Handler(r.UpstreamTimeout, upstream.Answers{Keep5xx: r.Keep5xx, Final: r.FinalStatuses, NoEffect: r.NoEffectStatuses})
	if r.PassThrough {
		return &route{Handler: next, upstream: next, rule: r, passThrough: true}, nil
	}
	counts := p.counts.Calls(r.Operation, r.Match)
	g, err := p.newGuard(func(list []semel.Secret) (*semel.Guard, error) {
		return semel.New(p.claims(), p.options(r, counts, list))
	})
	if err != nil {
		return nil, err
	}
	once, err := semelhttp.Middleware(g, p.tenant(), p.http(r))
	if err != nil {
		return nil, err
	}
	served := next
	if p.observer != nil {
		served = service(r)
	}
	to := &route{
		upstream: next, rule: r, methods: r.Methods,
		keyOptional: !r.RequireKey, fromBody: len(r.KeyFrom) > 0, parks: r.OnDoubt == semel.Park,
	}
	to.withoutKey = p.countWithoutKey(served, to, counts)
	to.Handler = p.countAnswer(once(to.withoutKey))
	return to, nil
}

// claims is the store of the Guards.
func (p *Proxy) claims() store.Store {
	if p.observer != nil {
		return observedStore{p.paced}
	}
	return namedStore{p.paced}
}

// options are the options of the Guard of a rule.
func (p *Proxy) options(r *config.Route, counts *metrics.Calls, secrets []semel.Secret) *semel.Options {
	c := p.Config
	log := p.logEvents()
	o := &semel.Options{
		OnDoubt: r.OnDoubt, Lease: c.Lease, StoreTimeout: c.StoreTimeout, Retention: r.Retention, MaxAttempts: c.MaxAttempts, MaxOutcome: c.MaxOutcome, Secrets: secrets,
		HashKeys: p.HashKeys,
		Observe: func(ctx context.Context, e semel.Event) {
			counts.Observe(ctx, e)
			log(ctx, e)
		},
	}
	if r.OnDoubt == semel.Park && p.reconcile != nil {
		h := p.reconcile
		if r.NoStore {
			h = h.StatusOnly()
		}
		o.Reconcile = h.Ask(p.Store)
	}
	return o
}

// http are the options of the middleware of a rule.
func (p *Proxy) http(r *config.Route) *semelhttp.Options {
	c := p.Config
	o := &semelhttp.Options{
		Operation: func(*http.Request) string { return r.Operation },
		Methods:   r.Methods, KeyHeaders: c.KeyHeaders, Optional: !r.RequireKey, Wait: r.Wait, NoStore: r.NoStore,
		MaxBody: c.MaxBody, TempDir: p.TempDir, MaxResponse: c.MaxOutcome,
		Detach:    true, // a client that hangs up must not leave a request in doubt
		HoldFlush: true, // httputil.ReverseProxy flushes answers of unknown length
		Refuse:    p.refuse,

		FingerprintHeaders: compared(c), RefusalOrigins: c.RefusalOrigins,
	}
	if len(c.ReplayHeaders) > 0 {
		o.ReplayHeaders = slices.Concat(semelhttp.UsualReplayHeaders(), c.ReplayHeaders)
	}
	if len(r.KeyFrom) > 0 {
		o.KeyFrom = keyFrom(r.KeyFrom)
	}
	if p.authorize != nil {
		o.Authorize = p.mayReplay
	}
	return o
}

// compared are the headers that requests with one key must have in common. Nil: the usual ones.
// With trust-forwarded a service may choose a site by X-Forwarded-Host, and all sites may have
// one Host, so that it counts where Host counts.
func compared(c *config.Config) []string {
	names := c.FingerprintHeaders
	if !c.TrustForwarded {
		return names
	}
	if names == nil {
		names = semelhttp.UsualFingerprintHeaders()
	}
	names = httpname.Canonical(names)
	if !slices.Contains(names, "Host") || slices.Contains(names, forwardedHost) {
		return names
	}
	return append(names, forwardedHost)
}

const forwardedHost = "X-Forwarded-Host"

// mayReplay asks the authorize hook about a replay, which counts before: it is in memory while
// the hook is asked, and a flood of replays makes the hook slow.
func (p *Proxy) mayReplay(r *http.Request) error {
	if v := limit.FromContext(r.Context()); v != nil && v.Replayed.Load() {
		n := v.Found.Load()
		if err := v.Hold(n); err != nil {
			v.Keep(n) // the store has read it
			return fmt.Errorf("%w: %w", errNotAsked, err)
		}
	}
	return p.authorize.Authorize(r)
}

// tenant names the tenant of a request, and counts the request for its limits.
func (p *Proxy) tenant() semelhttp.TenantFunc {
	if p.Rule.Shared() {
		return func(r *http.Request) (string, error) { return semel.Shared, limit.FromContext(r.Context()).Admit("") }
	}
	return func(r *http.Request) (string, error) {
		tenant, err := p.Finder.Tenant(r)
		if errors.Is(err, scope.ErrUnavailable) {
			err = fmt.Errorf("%w: %w", semel.ErrUnavailable, err)
		}
		if err == nil {
			err = limit.FromContext(r.Context()).Admit(tenant)
		}
		return tenant, err
	}
}
