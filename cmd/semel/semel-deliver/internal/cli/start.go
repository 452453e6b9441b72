package cli

import (
	"context"
	"errors"
	"log/slog"
	"net/http"
	"time"

	"github.com/semel-go/semel/cmd/semel/internal/hook"
	"github.com/semel-go/semel/cmd/semel/internal/input"
	"github.com/semel-go/semel/cmd/semel/internal/program"
	"github.com/semel-go/semel/cmd/semel/internal/secrets"
	"github.com/semel-go/semel/cmd/semel/internal/upstream"
	"github.com/semel-go/semel/cmd/semel/semel-deliver/internal/deliver"
	"github.com/semel-go/semel/consume/driver"
)

// run delivers messages until ctx ends.
func (o *options) run(ctx context.Context, log *slog.Logger, getenv func(string) string) (err error) {
	p, err := o.plan(log)
	if err != nil {
		return err
	}
	p.warn(o, log, getenv)
	program.LimitMemory(getenv)
	s := p.service
	s.Log, s.Sending.Log = log, log
	files, ferr := program.TLSFiles(p.to, log)
	hookFiles, herr := program.TLSFiles(p.hooks, log)
	if err := errors.Join(ferr, herr); err != nil {
		return err
	}
	client := http.Client{Transport: upstream.NewTransport(time.Duration(o.ToIdle), files)}
	s.Sending.Transport = client.Transport
	defer client.CloseIdleConnections()
	if p.reconcile != nil {
		s.Reconcile = hook.New(p.reconcile, time.Duration(o.ReconcileTimeout), hookFiles)
		defer s.Reconcile.Close()
	}
	at := &opened{}
	defer func() { err = errors.Join(err, at.close()) }()
	source, err := p.open(ctx, at, o.AdminListen, log)
	if err != nil {
		return err
	}
	program.WarnSettings(ctx, log, at.store)
	program.WarnRecords(ctx, log, at.store, s.HashKeys != nil, s.Secrets, s.Calls.Operation)
	s.Started = func() {
		args := []any{"from", p.broker.String(), "to", input.Masked(s.Sending.URL), "store", p.store.String(), "group", p.broker.Group,
			"on_doubt", s.OnDoubt.String(), "concurrency", s.Concurrency}
		if s.Calls.TenantHeader != "" {
			args = append(args, "tenant_requests", s.TenantRequests)
		}
		log.Info("delivering", args...)
	}
	service, err := deliver.New(at.store, s)
	if err != nil {
		return err
	}
	defer serveAdmin(at.admin, service.Ready, service.Counts(), log)()
	secrets.LogHashKeys(log, s.HashKeys)
	secrets.Log(log, s.Secrets)
	p.store.LogEncryption(ctx, log)
	return service.Serve(ctx, source)
}

// open opens the store, the listener and the source. The error names everything that
// failed, each with the next step.
func (p *plan) open(ctx context.Context, at *opened, addr string, log *slog.Logger) (driver.Source, error) {
	st, serr := program.OpenStore(ctx, p.store, log)
	if serr == nil {
		at.store, at.closers = st, append(at.closers, st.Close)
	}
	aerr := at.listen(ctx, addr)
	source, closeSource, berr := p.broker.Open(ctx)
	if berr == nil {
		at.closers = append(at.closers, closeSource)
	}
	return source, errors.Join(serr, aerr, berr)
}

// warn logs, once at the start, each choice of options that is unsafe in some
// deployments.
func (p *plan) warn(o *options, log *slog.Logger, getenv func(string) string) {
	_, isFile := p.store.File()
	if p.store.Memory() {
		log.Warn("the records are in memory: when this process ends, each message that comes again is sent once more")
	}
	if isFile || p.store.Memory() {
		if where := program.Replicated(getenv); where != "" {
			log.Warn("the records belong to this process alone. If there is a second replica, a duplicate that reaches it is sent again: run one replica, or choose a store that all replicas share (--store postgres://… or redis://…)",
				"store", p.store.String(), "because", where+" is set")
		}
	}
	for _, key := range o.Key {
		if key == "unprotected" {
			log.Warn("messages without a key are sent under a new key each time, so that their duplicates take effect again")
		}
	}
	input.WarnMode(log, o.SecretFile, o.Keys, o.HashKeysFile, o.ToKey, o.HookKey)
}
