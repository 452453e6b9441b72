package cli

import (
	"context"
	"errors"
	"log/slog"
	"net"
	"net/http"
	"time"

	"github.com/semel-go/semel/cmd/semel/internal/admin"
	"github.com/semel-go/semel/cmd/semel/internal/hook"
	"github.com/semel-go/semel/cmd/semel/internal/input"
	"github.com/semel-go/semel/cmd/semel/internal/program"
	"github.com/semel-go/semel/cmd/semel/internal/storeurl"
	"github.com/semel-go/semel/cmd/semel/internal/upstream"
	"github.com/semel-go/semel/cmd/semel/semel-deliver/internal/deliver"
	"github.com/semel-go/semel/consume/driver"
)

// run delivers messages until ctx ends.
func (o *options) run(ctx context.Context, log *slog.Logger, getenv func(string) string) (err error) {
	p, err := o.plan()
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
	at, err := p.open(ctx, o.AdminListen, log)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, at.close()) }()
	program.WarnSettings(ctx, log, at.store)
	service, err := deliver.New(at.store, s)
	if err != nil {
		return err
	}
	defer serveAdmin(at.admin, service, log)()
	log.Info("delivering", "from", p.broker.String(), "to", input.Masked(s.Sending.URL), "store", p.store.String(), "group", p.broker.Group,
		"on_doubt", s.OnDoubt.String(), "concurrency", s.Concurrency)
	return service.Serve(ctx, at.source)
}

// opened is what a start opens.
type opened struct {
	store       storeurl.Handle
	admin       net.Listener // nil: there is none
	source      driver.Source
	closeSource func() error
}

// open opens the store, the listener and the source. The error names everything that
// failed, each with the next step.
func (p *plan) open(ctx context.Context, addr string, log *slog.Logger) (*opened, error) {
	var o opened
	var serr, aerr, berr error
	o.store, serr = program.OpenStore(ctx, p.store, log)
	if addr != "" {
		o.admin, aerr = program.Listen(ctx, "--admin-listen", addr)
	}
	o.source, o.closeSource, berr = p.broker.Open(ctx)
	err := errors.Join(serr, aerr, berr)
	if err == nil {
		return &o, nil
	}
	if o.admin != nil {
		_ = o.admin.Close()
	}
	if serr == nil {
		err = errors.Join(err, o.store.Close())
	}
	if berr == nil {
		err = errors.Join(err, o.closeSource())
	}
	return nil, err
}

func (o *opened) close() error { return errors.Join(o.closeSource(), o.store.Close()) }

// serveAdmin serves the health, the readiness and the metrics until stop is called.
// Without a listener it does nothing.
func serveAdmin(l net.Listener, service *deliver.Service, log *slog.Logger) (stop func()) {
	if l == nil {
		return func() {}
	}
	server := admin.Server(admin.Handler(service.Ready, service.Counts(), log), log)
	go func() {
		if err := server.Serve(l); !errors.Is(err, http.ErrServerClosed) {
			log.Error("the admin server ended; messages are delivered without it", "error", err)
		}
	}()
	log.Info("admin listening", "addr", l.Addr().String())
	return func() { _ = server.Close() } // a prober asks again
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
	for _, path := range []string{o.SecretFile, o.ToKey, o.HookKey} {
		if err := program.CheckMode(path); err != nil {
			log.Warn("a file with secrets is readable for others", "error", err)
		}
	}
}
