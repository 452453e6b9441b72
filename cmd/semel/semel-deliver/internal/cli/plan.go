package cli

import (
	"cmp"
	"errors"
	"log/slog"
	"net/http"
	"net/textproto"
	"net/url"
	"slices"
	"strings"
	"time"

	"github.com/semel-go/semel"
	"github.com/semel-go/semel/cmd/semel/internal/input"
	"github.com/semel-go/semel/cmd/semel/internal/secrets"
	"github.com/semel-go/semel/cmd/semel/internal/storeurl"
	"github.com/semel-go/semel/cmd/semel/internal/tlsfile"
	"github.com/semel-go/semel/cmd/semel/internal/upstream"
	"github.com/semel-go/semel/cmd/semel/semel-deliver/internal/address"
	"github.com/semel-go/semel/cmd/semel/semel-deliver/internal/deliver"
	"github.com/semel-go/semel/cmd/semel/semel-deliver/internal/event"
	"github.com/semel-go/semel/consume"
	"github.com/semel-go/semel/internal/httpname"
)

// plan is the checked configuration.
type plan struct {
	broker    *address.Broker
	store     storeurl.URL
	service   deliver.Options // without what needs I/O
	reconcile *url.URL        // nil: no hook
	to, hooks tlsfile.Files
}

// planner collects the mistakes in the options.
type planner struct {
	*options
	mistakes
}

// plan checks all options and reports every mistake. log is for the keys of the store.
func (o *options) plan(log *slog.Logger) (*plan, error) {
	p := &planner{options: o}
	out := &plan{
		to: tlsfile.Files{Cert: o.ToCert, Key: o.ToKey, CA: o.ToCA}, hooks: tlsfile.Files{Cert: o.HookCert, Key: o.HookKey, CA: o.HookCA},
	}
	var err error
	out.broker, err = address.Parse(o.From, &address.Options{Group: o.Group, DeadLetters: o.DeadLetters, Quarantine: o.Quarantine, Order: o.Order, InFlight: o.inFlight()})
	p.failed(err)
	if out.store, err = storeurl.Parse(o.Store, "--store"); err == nil && o.OnDoubt.Policy == semel.Park {
		err = out.store.CheckPark()
	}
	p.failed(err)
	out.store, err = out.store.Encrypted(o.Keys, "--encryption-keys", o.RequireEncrypted, log)
	p.failed(err)
	if o.RequireEncrypted && o.Keys == "" {
		p.bad("require-encrypted", "", "needs --encryption-keys")
	}
	out.service = deliver.Options{
		OnDoubt: o.OnDoubt.Policy, ReconcileWait: p.span("reconcile-wait", o.ReconcileWait, 0, 24*time.Hour),
		Lease: p.span("lease", o.Lease, 100*time.Millisecond, time.Hour), StoreTimeout: p.span("store-timeout", o.StoreTimeout, 10*time.Millisecond, 10*time.Minute),
		Retention: p.span("retention", o.Retention, time.Second, 3650*24*time.Hour), ShortRetention: o.ShortRetention,
		MaxAttempts: o.MaxAttempts, Concurrency: o.Concurrency, InFlight: o.InFlight, MaxBytes: int64(o.MaxBytes),
		Drain: p.span("drain", o.Drain, 0, time.Hour), SweepEvery: p.span("sweep-every", o.SweepEvery, 0, 24*time.Hour),
	}
	p.span("reconcile-timeout", o.ReconcileTimeout, 10*time.Millisecond, 10*time.Minute)
	p.span("to-idle", o.ToIdle, 0, time.Hour)
	p.limits(&out.service)
	p.keys(&out.service.Calls, out.broker)
	out.service.TenantRequests = p.tenantRequests(out.service.Calls.TenantHeader != "")
	p.sending(&out.service.Sending, out.broker)
	out.reconcile = p.reconcileURL()
	if o.AdminListen != "" {
		p.address("admin-listen", o.AdminListen)
	}
	p.tlsFiles("to", out.to, isHTTPS(out.service.Sending.URL))
	p.tlsFiles("hook", out.hooks, isHTTPS(out.reconcile))
	if o.SecretFile != "" {
		out.service.Secrets, err = secrets.Read(o.SecretFile, "--secret-file")
		p.failed(err)
	}
	out.service.HashKeys, err = secrets.HashKeys(o.HashKeysFile, "--hash-keys-file")
	p.failed(err)
	return out, errors.Join(p.errs...)
}

// inFlight is --in-flight, or its default.
func (o *options) inFlight() int { return max(0, cmp.Or(o.InFlight, 4*o.Concurrency)) }

func (p *planner) limits(s *deliver.Options) {
	p.count("max-attempts", int64(p.MaxAttempts), 0, 1_000_000)
	p.count("concurrency", int64(p.Concurrency), 1, 10_000)
	p.count("max-body", int64(p.MaxBody), 1, 1<<30)
	p.count("max-bytes", int64(p.MaxBytes), 1, 1<<40)
	switch {
	case p.InFlight == 0:
		s.InFlight = p.inFlight()
	case p.InFlight < p.Concurrency || p.InFlight > 1_000_000:
		p.bad("in-flight", p.InFlight, "must be from concurrency, which is %d, to 1000000; or 0 for 4 times concurrency", p.Concurrency)
	}
}

// mostTenantRequests is the largest --tenant-requests.
const mostTenantRequests = 1_000_000

// tenantRequests is --tenant-requests, or its default. Tenants says that messages have tenants.
func (p *planner) tenantRequests(tenants bool) int {
	if p.TenantRequests == nil {
		return max(1, p.Concurrency/4)
	}
	n := *p.TenantRequests
	p.count("tenant-requests", int64(n), 0, mostTenantRequests)
	if n > 0 && !tenants {
		p.bad("tenant-requests", n, "has no effect with --scope %s, because all messages belong to one tenant; set --scope header:NAME, or leave it out", p.Scope)
	}
	return n
}

func (p *planner) keys(c *deliver.Calls, b *address.Broker) {
	if b != nil {
		c.Operation = b.Group
	}
	for _, text := range p.Key {
		k, err := deliver.ParseKey(text)
		if err != nil {
			p.bad("key", text, "%v", err)
			continue
		}
		c.Sources = append(c.Sources, k)
	}
	if i := slices.IndexFunc(p.Key, func(k string) bool { return k == "unprotected" || k == "reject" }); len(p.Key) == 0 || i >= 0 && i < len(p.Key)-1 {
		p.bad("key", strings.Join(p.Key, ","), "name at least one source; unprotected and reject can be the last only")
	}
	switch name, ok := strings.CutPrefix(p.Scope, "header:"); {
	case ok && name != "":
		c.TenantHeader = name
	case p.Scope != "single":
		p.bad("scope", p.Scope, "choose single, or header:NAME for the header of messages that names the tenant")
	}
	switch p.Compare {
	case "body":
	case "nothing":
		c.AnyBody = true
	default:
		p.bad("compare", p.Compare, "choose body or nothing")
	}
	if c.Operation != "" && b != nil {
		p.failed(p.checkGroup(c))
	}
}

// checkGroup reports a name that records cannot have.
func (p *planner) checkGroup(c *deliver.Calls) error {
	probe := deliver.Calls{Operation: c.Operation, Sources: []consume.KeySource{consume.BrokerID()}}
	if err := consume.CallFunc(probe.Call).Check(); err != nil {
		return &input.Error{Field: "--group", Value: c.Operation, Want: err.Error()}
	}
	return nil
}

func (p *planner) sending(s *deliver.Sending, b *address.Broker) {
	if s.URL = p.url("to", p.To); p.To == "" {
		p.bad("to", "", "is required: the service that gets the messages, such as http://127.0.0.1:3000/events")
	}
	s.Mode, s.Timeout, s.MaxBody, s.MaxRefusals = p.Mode, p.span("timeout", p.Timeout, time.Millisecond, 24*time.Hour), int64(p.MaxBody), p.MaxAttempts
	s.Statuses = deliver.Statuses{Done: p.DoneStatuses, Final: p.FinalStatuses, NoEffect: p.NoEffectStatuses}
	p.statuses()
	s.Defaults = event.Defaults{Source: p.EventSource, Type: p.EventType}
	if b != nil && p.EventSource == "" {
		s.Defaults.Source = b.Kind + ":"
	}
	for flag, text := range map[string]string{"event-source": p.EventSource, "event-type": p.EventType} {
		if !event.IsHeaderValue(text) || flag == "event-type" && text == "" {
			p.bad(flag, text, "must be text without control characters, and event-type must not be empty")
		}
	}
	s.Header = p.header("header", p.Header, p.ownHeader)
	s.Forward = slices.Clone(p.ForwardHeaders)
	if name, ok := strings.CutPrefix(p.Scope, "header:"); ok && name != "" {
		s.Forward = append(s.Forward, name)
	}
	for _, name := range s.Forward {
		if !httpname.IsToken(name) {
			p.bad("forward-headers", name, "is no header name")
			continue
		}
		p.ownHeader("forward-headers", name)
	}
}

// ownHeader refuses a header that this program or the client of HTTP sets.
func (p *planner) ownHeader(flag, name string) {
	same := textproto.CanonicalMIMEHeaderKey(name)
	own := []string{"Idempotency-Key", "Host", "Connection", "Content-Length", "Content-Type", "Content-Encoding", "Transfer-Encoding", "Trailer", "Te", "Upgrade", "Keep-Alive", "Proxy-Connection", "Expect"}
	if slices.Contains(own, same) || strings.HasPrefix(same, upstream.OwnPrefix) || strings.HasPrefix(same, "Ce-") {
		p.bad(flag, name, "is a header that this program sets itself")
	}
}

func (p *planner) statuses() {
	seen := map[int]string{}
	for _, f := range []struct {
		flag string
		list []int
	}{{"done-statuses", p.DoneStatuses}, {"final-statuses", p.FinalStatuses}, {"no-effect-statuses", p.NoEffectStatuses}} {
		for _, s := range f.list {
			switch other := seen[s]; {
			case s < http.StatusOK || s > 599:
				p.bad(f.flag, s, "must be a status from 200 to 599")
			case other != "" && other != f.flag:
				p.bad(f.flag, s, "is one of %s, too", other)
			}
			seen[s] = f.flag
		}
	}
}

func (p *planner) reconcileURL() *url.URL {
	u := p.url("reconcile-url", p.ReconcileURL)
	if u != nil && p.OnDoubt.Policy != semel.Park {
		p.bad("reconcile-url", input.Masked(u), "is asked only about parked messages; set --on-doubt park")
	}
	return u
}
