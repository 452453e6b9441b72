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

// plan is what the options come to.
type plan struct {
	config  *config.Config
	rule    scope.Rule
	keys    *scope.KeySet // nil: tokens are not verified
	store   storeurl.URL
	secrets []semel.Secret
}

// plan checks all options, and reports all that is wrong with them.
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
	if err == nil && cfg.Parks() && !p.store.TakesPark() { // else each such request would be answered 503
		errs = append(errs, &input.Error{Field: cfg.Where("store"), Value: p.store.String(),
			Want: "does not take on-doubt park, for a crash or a fail-over of Redis may lose a claim, and the effect then happens twice; add semel-allow-park to its query if that may be, or choose postgres:// or sqlite:"})
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
	caution(ctx, log, st)
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

// openTime is how long the store may take to open before that is told.
const openTime = 3 * time.Second

// checkTime is how long a store's settings may be looked at before the proxy
// starts without.
const checkTime = 5 * time.Second

// caution logs each setting under which the store may lose what it was told, as
// semel doctor tells them. It is no reason not to start: the settings may be
// meant so, or be safe for a reason that the store cannot see.
func caution(ctx context.Context, log *slog.Logger, st store.Store) {
	c, ok := store.As[store.Checker](st)
	if !ok {
		return
	}
	ctx, cancel := context.WithTimeout(ctx, checkTime)
	defer cancel()
	for _, line := range input.Lines(c.Check(ctx)) {
		log.Warn("the store may not keep its promises; see semel doctor", "why", line)
	}
}

// listen listens on an address, which was given where errors say.
func listen(ctx context.Context, where, addr string) (net.Listener, error) {
	l, err := new(net.ListenConfig).Listen(ctx, "tcp", addr)
	if err != nil {
		return nil, fmt.Errorf("%s: %w", where, err)
	}
	return l, nil
}
