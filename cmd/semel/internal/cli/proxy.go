package cli

import (
	"context"
	"encoding/json"
	"errors"
	"log/slog"

	"github.com/semel-go/semel"
	"github.com/semel-go/semel/cmd/semel/internal/config"
	"github.com/semel-go/semel/cmd/semel/internal/input"
	"github.com/semel-go/semel/cmd/semel/internal/observe"
	"github.com/semel-go/semel/cmd/semel/internal/program"
	"github.com/semel-go/semel/cmd/semel/internal/proxy"
	"github.com/semel-go/semel/cmd/semel/internal/scope"
	"github.com/semel-go/semel/cmd/semel/internal/secrets"
	"github.com/semel-go/semel/cmd/semel/internal/storeurl"
	"github.com/semel-go/semel/cmd/semel/internal/tlsfile"
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
	old     storeurl.URL // of a move; the zero URL: none
	secrets []semel.Secret
	hashKey []byte // a secret; nil: keys are stored as they are
	files   error  // names each file of secrets or certificates that cannot be used
}

// plan checks all options and reports every mistake. It leaves mistakes in files to open,
// which reports them with everything else that keeps the proxy from starting.
func (c *proxyCmd) plan(log *slog.Logger) (*plan, error) {
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
	errs = append(errs, err, proxy.CheckHeaders(cfg, p.rule))
	p.store, err = storeurl.Parse(cfg.Store, cfg.Where("store"))
	errs = append(errs, err)
	if err == nil && cfg.Parks() {
		errs = append(errs, p.store.CheckPark())
	}
	if cfg.MovedFrom != "" {
		p.old, err = storeurl.Parse(cfg.MovedFrom, cfg.Where("moved-from"))
		if err == nil && p.old.Same(p.store) {
			err = &input.Error{Field: cfg.Where("moved-from"), Value: p.old.String(), Want: "is the store itself; give the store that it replaces"}
		}
		errs = append(errs, err)
	}
	switch needs := p.rule.NeedsKeys(); {
	case needs && cfg.JWKS == "":
		errs = append(errs, &input.Error{Field: cfg.Where("jwks"), Want: "is required with scope jwt:CLAIM: the URL or the file of the key set that verifies tokens"})
	case needs:
		p.keys = scope.NewKeySet(cfg.JWKS, &scope.KeySetOptions{Issuer: cfg.JWTIssuer, Audience: cfg.JWTAudience, Log: log})
	case cfg.JWKS != "" || cfg.JWTIssuer != "" || cfg.JWTAudience != "":
		errs = append(errs, &input.Error{Field: cfg.Where("scope"), Value: cfg.Scope, Want: "verifies no tokens; use jwt:CLAIM, or leave out jwks, jwt-issuer and jwt-audience"})
	}
	files := p.readFiles()
	if err := errors.Join(errs...); err != nil {
		return nil, errors.Join(err, files)
	}
	p.files = files
	return p, nil
}

// readFiles reads the secrets, and checks the files for TLS.
func (p *plan) readFiles() error {
	var errs []error
	for _, f := range []struct {
		prefix, ca string
		files      tlsfile.Files
	}{{"tls", "tls-client-ca", p.config.Listener}, {"upstream", "upstream-ca", p.config.Connections.Upstream}, {"hook", "hook-ca", p.config.Hooks}} {
		if _, err := program.TLSFiles(f.files, nil); err != nil && (f.files.Cert == "") == (f.files.Key == "") {
			option := f.ca
			if part := tlsfile.PartOf(err); part != tlsfile.PartCA {
				option = f.prefix + "-" + part
			}
			errs = append(errs, &input.Error{Field: p.config.Where(option), Want: "cannot be used: " + err.Error()})
		}
	}
	if p.config.SecretFile != "" {
		var err error
		p.secrets, err = secrets.Read(p.config.SecretFile, p.config.Where("secret-file"))
		errs = append(errs, err)
	}
	var err error
	p.hashKey, err = secrets.HashKeys(p.config.HashKeysFile, p.config.Where("hash-keys-file"))
	return errors.Join(append(errs, err)...)
}

func (c *proxyCmd) Run(ctx context.Context, e *env) (err error) {
	p, err := c.plan(e.log)
	if err != nil {
		return err
	}
	e.level.Set(c.LogLevel)
	log := e.log
	p.warn(e)
	program.LimitMemory(e.getenv)
	st, clients, admin, err := p.open(ctx, log)
	if err != nil {
		return err
	}
	if st != nil {
		defer func() { err = errors.Join(err, st.Close()) }()
		program.WarnSettings(ctx, log, st)
		program.WarnRecords(ctx, log, st, p.hashKey != nil, p.secrets, p.config.Operations()...)
	}
	px, err := p.proxy(ctx, log, st)
	if err != nil {
		_ = clients.Close()
		if admin != nil {
			_ = admin.Close()
		}
		return err
	}
	defer px.Close()
	if admin != nil {
		log.Info("admin listening", "addr", admin.Addr().String())
	}
	where := p.store.String()
	if p.config.Observe {
		where = "none"
		log.Info("observing: every request is forwarded unchanged, and none takes effect once", "log_every", proxy.LogEvery)
	}
	if !p.config.Observe {
		secrets.LogHashKeys(log, p.hashKey)
		secrets.Log(log, p.secrets)
	}
	log.Info("listening", "addr", clients.Addr().String(), "tls", p.config.Listener.Cert != "", "upstream", p.config.Upstream.String(), "store", where,
		"scope", p.config.Scope, "on_doubt", p.config.Rest.OnDoubt.String(), "rules", len(p.config.Rules))
	return errors.Join(px.Serve(ctx, clients, admin), writeObserved(e, px.Observed()))
}

// writeObserved writes the report of an observing proxy to standard output.
func writeObserved(e *env, r *observe.Report) error {
	switch {
	case r == nil:
		return nil
	case e.json:
		return json.NewEncoder(e.stdout).Encode(r)
	}
	return r.WriteText(e.stdout)
}

// proxy makes the proxy from the plan.
func (p *plan) proxy(ctx context.Context, log *slog.Logger, st store.Store) (*proxy.Proxy, error) {
	parts := proxy.Parts{Config: p.config, Store: st, Rule: p.rule, Secrets: p.secrets, HashKeys: p.hashKey, Log: log, TempDir: p.tempDir(log)}
	var errs [3]error
	parts.Finder, errs[0] = scope.NewFinder(p.rule, p.keys)
	parts.UpstreamTLS, errs[1] = program.TLSFiles(p.config.Connections.Upstream, log)
	parts.HookTLS, errs[2] = program.TLSFiles(p.config.Hooks, log)
	if err := errors.Join(errs[:]...); err != nil {
		return nil, err
	}
	if err := parts.Finder.Ready(ctx); err != nil {
		log.Warn("tokens cannot be verified yet; requests are answered 503 until they can", "error", err)
	}
	return proxy.New(parts)
}
