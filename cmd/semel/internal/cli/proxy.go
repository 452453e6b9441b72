package cli

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net"
	"time"

	"github.com/semel-go/semel"
	"github.com/semel-go/semel/cmd/semel/internal/config"
	"github.com/semel-go/semel/cmd/semel/internal/input"
	"github.com/semel-go/semel/cmd/semel/internal/proxy"
	"github.com/semel-go/semel/cmd/semel/internal/scope"
	"github.com/semel-go/semel/cmd/semel/internal/secrets"
	"github.com/semel-go/semel/cmd/semel/internal/storeurl"
	"github.com/semel-go/semel/store"
)

type proxyCmd struct {
	Config   string     `name:"config" placeholder:"FILE" help:"A YAML file with these options, and with rules; see above. Flags override it."`
	LogLevel slog.Level `name:"log-level" placeholder:"LEVEL" default:"info" help:"debug, info (default), warn or error."`

	config.Options `embed:""`
}

// plan is the checked configuration of the proxy.
type plan struct {
	config  *config.Config
	rule    scope.Rule
	keys    *scope.KeySet // nil: tokens are not verified
	store   storeurl.URL
	secrets []semel.Secret
}

// plan checks all options and reports every mistake.
func (c *proxyCmd) plan() (*plan, error) {
	var file *config.Source
	if c.Config != "" {
		var err error
		if file, err = config.ReadFile(c.Config); err != nil {
			return nil, err
		}
	}
	cfg, err := config.Resolve(&c.Options, file)
	p := &plan{config: cfg}
	errs := []error{err}
	p.rule, err = scope.Parse(cfg.Scope, cfg.Where("scope"))
	errs = append(errs, err)
	p.store, err = storeurl.Parse(cfg.Store, cfg.Where("store"))
	errs = append(errs, err)
	if err == nil && cfg.Parks() && !p.store.TakesPark() { // each parked request would be answered 503
		errs = append(errs, &input.Error{Field: cfg.Where("store"), Value: p.store.String(),
			Want: "does not take on-doubt park, because a crash or a fail-over of Redis can lose a claim, and the effect then happens twice; if that is acceptable add semel-allow-park to the query, or choose postgres:// or sqlite:"})
	}
	switch needs := p.rule.NeedsKeys(); {
	case needs && cfg.JWKS == "":
		errs = append(errs, &input.Error{Field: cfg.Where("jwks"), Want: "is required with scope jwt:CLAIM: the URL or the file of the key set that verifies tokens"})
	case needs:
		p.keys = scope.NewKeySet(cfg.JWKS, &scope.KeySetOptions{Issuer: cfg.JWTIssuer, Audience: cfg.JWTAudience})
	case cfg.JWKS != "" || cfg.JWTIssuer != "" || cfg.JWTAudience != "":
		errs = append(errs, &input.Error{Field: cfg.Where("scope"), Value: cfg.Scope, Want: "verifies no tokens; use jwt:CLAIM, or leave out jwks, jwt-issuer and jwt-audience"})
	}
	if cfg.SecretFile != "" {
		p.secrets, err = secrets.Read(cfg.SecretFile, cfg.Where("secret-file"))
		errs = append(errs, err)
	}
	return p, errors.Join(errs...)
}

func (c *proxyCmd) Run(ctx context.Context, e *env) (err error) {
	p, err := c.plan()
	if err != nil {
		return err
	}
	e.level.Set(c.LogLevel)
	log := e.log
	if p.store.Memory() {
		log.Warn("the records are in memory: when this process ends, each request may take effect once more")
	}
	late := time.AfterFunc(openTime, func() { log.Warn("the store has not answered yet", "store", p.store.String()) })
	st, err := p.store.Open(ctx)
	late.Stop()
	if err != nil {
		return fmt.Errorf("store: %w", err)
	}
	defer func() { err = errors.Join(err, st.Close()) }()
	warnSettings(ctx, log, st)
	finder, err := scope.NewFinder(p.rule, p.keys)
	if err != nil {
		return err
	}
	if err := finder.Ready(ctx); err != nil {
		log.Warn("tokens cannot be verified yet; requests are answered 503 until they can", "error", err)
	}
	px, err := proxy.New(proxy.Parts{Config: p.config, Store: st, Rule: p.rule, Finder: finder, Secrets: p.secrets, Log: log})
	if err != nil {
		return err
	}
	defer px.Close()
	clients, err := listen(ctx, p.config.Where("listen"), p.config.Listen)
	if err != nil {
		return err
	}
	var admin net.Listener
	if p.config.AdminListen != "" {
		if admin, err = listen(ctx, p.config.Where("admin-listen"), p.config.AdminListen); err != nil {
			_ = clients.Close()
			return err
		}
		log.Info("admin listening", "addr", admin.Addr().String())
	}
	log.Info("listening", "addr", clients.Addr().String(), "upstream", p.config.Upstream.String(), "store", p.store.String(),
		"scope", p.config.Scope, "on_doubt", p.config.Rest.OnDoubt.String(), "rules", len(p.config.Rules))
	return px.Serve(ctx, clients, admin)
}

// openTime is how long the store may take to open before the proxy logs that.
const openTime = 3 * time.Second

// checkTime limits the check of the store's settings at the start.
const checkTime = 5 * time.Second

// warnSettings logs each setting with which the store can lose records, as semel
// doctor does. The proxy starts anyway, because the settings may be intended.
func warnSettings(ctx context.Context, log *slog.Logger, st store.Store) {
	c, ok := store.As[store.Checker](st)
	if !ok {
		return
	}
	ctx, cancel := context.WithTimeout(ctx, checkTime)
	defer cancel()
	for _, line := range input.Lines(c.Check(ctx)) {
		log.Warn("the settings of the store are unsafe; see semel doctor", "reason", line)
	}
}

// listen listens on an address. where names the option in errors.
func listen(ctx context.Context, where, addr string) (net.Listener, error) {
	l, err := new(net.ListenConfig).Listen(ctx, "tcp", addr)
	if err != nil {
		return nil, fmt.Errorf("%s: %w", where, err)
	}
	return l, nil
}
