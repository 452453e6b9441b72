package cli

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"os"
	"time"

	"github.com/semel-go/semel/cmd/semel/internal/input"
	"github.com/semel-go/semel/cmd/semel/internal/program"
	"github.com/semel-go/semel/cmd/semel/internal/storeurl"
	"github.com/semel-go/semel/cmd/semel/internal/upstream"
	"github.com/semel-go/semel/cmd/semel/semel-deliver/internal/address"
	"github.com/semel-go/semel/cmd/semel/semel-deliver/internal/publish"
	"github.com/semel-go/semel/outbox"
)

// run publishes messages until ctx ends.
func (o *publishOptions) run(ctx context.Context, log *slog.Logger, getenv func(string) string) (err error) {
	p, err := o.plan()
	if err != nil {
		return err
	}
	input.WarnMode(log, o.SecretFile, o.ToKey)
	program.LimitMemory(getenv)
	if p.publisher.Name == "" {
		p.publisher.Name, _ = os.Hostname() // the publisher has a default
	}
	files, err := program.TLSFiles(p.files, log)
	if err != nil {
		return err
	}
	p.webhook.Transport = upstream.NewTransport(time.Duration(o.ToIdle), files)
	open := &opened{}
	defer func() { err = errors.Join(err, open.close()) }()
	box, berr := open.outbox(ctx, p.store, !o.NoListen, log)
	sink, serr := open.sinks(ctx, p)
	if err := errors.Join(berr, serr, open.listen(ctx, o.AdminListen)); err != nil { // all of them
		return err
	}
	service, err := publish.New(open.store, box, sink, p.publisher, log)
	if err != nil {
		return err
	}
	defer serveAdmin(open.admin, service.Ready, service.Counts(), log)()
	log.Info("publishing", "store", p.store.String(), "to", p.to.String(), "name", p.publisher.Name)
	return service.Run(ctx)
}

// outbox opens the outbox of a store that is there.
func (o *opened) outbox(ctx context.Context, u storeurl.URL, listen bool, log *slog.Logger) (publish.Outbox, error) {
	st, err := program.OpenExisting(ctx, u.For(storeurl.OutboxOwn), log)
	if err != nil {
		return nil, err
	}
	o.store, o.closers = st, append(o.closers, st.Close)
	box, err := storeurl.OutboxOf(st, listen)
	if err != nil {
		return nil, err
	}
	o.closers = append(o.closers, box.Close)
	if _, err := box.Stats(ctx); err != nil {
		return nil, fmt.Errorf("store: %s: the messages cannot be read: %w", u, err)
	}
	return box, nil
}

// sinks opens all destinations. Its error has all that do not answer.
func (o *opened) sinks(ctx context.Context, p *publishPlan) (outbox.Sink, error) {
	var errs []error
	open := func(s *address.Sink) outbox.Sink {
		sink, closeSink, err := s.Open(ctx)
		if err != nil {
			errs = append(errs, err)
			return nil
		}
		o.closers = append(o.closers, closeSink)
		return sink
	}
	to := open(p.to)
	routes := map[string]publish.Route{}
	for topic, t := range p.topics {
		route := publish.Route{Topic: t.name, Sink: to}
		if t.to != nil {
			route.Sink = open(t.to)
		}
		routes[topic] = route
	}
	return publish.Routes(routes, to), errors.Join(errs...)
}
