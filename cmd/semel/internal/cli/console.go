package cli

import (
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"log/slog"
	"net"
	"net/http"
	"strings"
	"time"

	"github.com/semel-go/semel/cmd/semel/internal/admin"
	"github.com/semel-go/semel/cmd/semel/internal/config"
	"github.com/semel-go/semel/cmd/semel/internal/input"
	"github.com/semel-go/semel/cmd/semel/internal/login"
	"github.com/semel-go/semel/cmd/semel/internal/program"
	"github.com/semel-go/semel/cmd/semel/internal/storeurl"
	"github.com/semel-go/semel/cmd/semel/internal/tlsfile"
	"github.com/semel-go/semel/console"
	"github.com/semel-go/semel/console/rates"
)

type consoleCmd struct {
	storeFlag
	hashFlag
	Listen     string          `name:"listen" placeholder:"ADDR" default:"127.0.0.1:8089" help:"The address of the pages, or unix:PATH (default ${default})."`
	Write      bool            `name:"write" help:"Operators may resolve, reopen, retry and drop. Without it the pages are read-only. It needs a log-in."`
	Users      string          `name:"users" placeholder:"FILE" help:"Log in with a user and a password of this file, which htpasswd -B writes."`
	UserHeader string          `name:"user-header" placeholder:"NAME" help:"The header in which a gateway in front of the console names the user who has logged in there."`
	Host       []string        `name:"host" placeholder:"NAME,…" help:"With --user-header: the names by which the gateway asks for the pages, such as console.example.org, if it does not ask by 127.0.0.1, [::1] or localhost."`
	TLSCert    string          `name:"tls-cert" placeholder:"FILE" help:"Serve HTTPS with this certificate chain (PEM)."`
	TLSKey     string          `name:"tls-key" placeholder:"FILE" help:"The private key of --tls-cert (PEM)."`
	ShowBody   bool            `name:"show-body" help:"Show kept answers, the results of steps and the bodies of messages, too. Cookies are never shown."`
	Retention  config.Duration `name:"retention" placeholder:"TIME" default:"7d" help:"How long a record is kept after a verdict (default ${default}). Use at least the longest retention of the processes that use the store: semel proxy has 1d, semel deliver and consumers have 7d, unless it is set. After that a repeat is a new call."`
	Metrics    []string        `name:"metrics" placeholder:"URL,…" help:"The /metrics of semel proxy or semel deliver, such as http://10.0.0.7:9090/metrics: their calls a minute are drawn."`
	Saga       []string        `name:"saga" placeholder:"NAME,…" help:"Definitions whose sagas can be chosen from a list."`
}

// Help implements kong.HelpProvider.
func (*consoleCmd) Help() string {
	return `Serves pages for operators: the calls in doubt, the stuck sagas and the quarantined messages; a search by key or by the hash that logs show; and with --write the forms that decide. A decision names the fence that the page has shown, or the state of the message, so that it is refused after a change by somebody else. It needs a reason, which the log keeps, and for a call or a saga the record, too.

Everybody who can open the pages sees keys and tenants. Without a log-in the console listens on this machine only. With --user-header it must be reachable by the gateway alone, so it listens on 127.0.0.1, ::1 or a Unix socket. If the gateway passes on the name by which browsers ask, name it by --host: other names are refused, because a page of another site could give its own name the address of this machine, and set the header itself.

Examples:

    semel console --store postgres://app@db/shop
    htpasswd -cB users eve && semel console --store sqlite:/var/lib/semel.db --users users --write
    semel console --store postgres://app@db/shop --user-header X-Forwarded-User --write --saga order
    semel console --store sqlite:semel.db --metrics http://127.0.0.1:9090/metrics
`
}

// login is the way to log in, and an error for each option that makes the pages open to
// people who should not see them.
func (c *consoleCmd) login(log *slog.Logger) (*login.Login, error) {
	local := program.IsLocal(c.Listen)
	var errs []error
	if c.Users != "" && c.UserHeader != "" {
		errs = append(errs, wrong("--user-header", c.UserHeader, "cannot be used together with --users; leave one out"))
	}
	if why := input.UnfitHeader(c.UserHeader); c.UserHeader != "" && why != "" {
		value := c.UserHeader
		if strings.ContainsAny(value, " :") {
			value = "" // it may be a header with its secret
		}
		errs = append(errs, wrong("--user-header", value, why+"; use the header in which the gateway names the user, such as X-Forwarded-User"))
	}
	for _, name := range c.Host {
		switch {
		case c.UserHeader == "":
			errs = append(errs, wrong("--host", name, "is for --user-header; leave it out"))
		case name == "" || strings.ContainsAny(name, "/: *"):
			errs = append(errs, wrong("--host", name, "must be a name without scheme, port and wildcards, such as console.example.org"))
		}
	}
	if c.Write && c.Users == "" && c.UserHeader == "" {
		errs = append(errs, wrong("--write", "", "needs a log-in, so that a record says who has decided; add --users or --user-header"))
	}
	switch {
	case local:
	case c.UserHeader != "":
		errs = append(errs, wrong("--listen", c.Listen, "can be reached from other machines, which could set "+c.UserHeader+" themselves; use 127.0.0.1, ::1 or unix:PATH behind the gateway"))
	case c.Users == "":
		errs = append(errs, wrong("--listen", c.Listen, "can be reached from other machines; add --users with --tls-cert, or use 127.0.0.1"))
	case c.TLSCert == "":
		errs = append(errs, wrong("--tls-cert", "", "is needed with --listen "+c.Listen+", because passwords would cross the network in plain text"))
	}
	if (c.TLSCert == "") != (c.TLSKey == "") {
		errs = append(errs, wrong("--tls-key", c.TLSKey, "belongs to --tls-cert; give both or none"))
	}
	if d := time.Duration(c.Retention); d < time.Second || d > 3650*24*time.Hour {
		errs = append(errs, wrong("--retention", c.Retention, "must be from 1s to 3650d"))
	}
	l := &login.Login{}
	if c.UserHeader != "" {
		l = login.ByHeader(c.UserHeader, c.Host)
	}
	if c.Users != "" {
		var err error
		if l, err = login.ByPassword(c.Users, log); err != nil {
			errs = append(errs, wrong("--users", c.Users, err.Error()))
		}
	}
	return l, errors.Join(errs...)
}

func (c *consoleCmd) Run(ctx context.Context, e *env) error {
	who, err := c.login(e.log)
	if err != nil {
		return err
	}
	secret, err := c.secret()
	if err != nil {
		return err
	}
	return c.with(ctx, e.log, func(h storeurl.Handle) (err error) {
		trail, err := e.openTrail()
		if err != nil {
			return err
		}
		defer func() { err = errors.Join(err, trail.Close()) }()
		o := &console.Options{ShowBodies: c.ShowBody, Retention: time.Duration(c.Retention), Sagas: c.Saga, HashKeys: secret, Log: e.log}
		o.Audit = func(_ context.Context, a console.Act) (func(error) error, error) {
			return trail.Begin(consoleAct(&a, c.Store))
		}
		if c.Write {
			o.Operator = login.Operator
		}
		if b, oerr := storeurl.OutboxOf(h, false); oerr == nil { // other stores have none
			defer func() { err = errors.Join(err, b.Close()) }()
			o.Outbox = b
		}
		if len(c.Metrics) > 0 {
			if o.Rates, err = rates.New(rates.Options{URLs: c.Metrics}); err != nil {
				value := strings.Join(c.Metrics, ",")
				if strings.ContainsAny(value, "@?#") {
					value = "" // it may contain a secret
				}
				return wrong("--metrics", value, strings.TrimPrefix(err.Error(), "rates: "))
			}
			go o.Rates.Run(ctx)
		}
		pages, err := console.New(h, o)
		if err != nil {
			return err
		}
		listener, err := c.listen(ctx, e.log)
		if err != nil {
			return err
		}
		return serveConsole(ctx, e.log, listener, who.Handler(pages))
	})
}

func (c *consoleCmd) listen(ctx context.Context, log *slog.Logger) (net.Listener, error) {
	listener, err := program.Listen(ctx, "--listen", c.Listen)
	if err != nil || c.TLSCert == "" {
		return listener, err
	}
	source, err := program.TLSFiles(tlsfile.Files{Cert: c.TLSCert, Key: c.TLSKey}, log)
	if err != nil {
		return nil, errors.Join(wrong("--tls-"+tlsfile.PartOf(err), "", "cannot be used: "+err.Error()), listener.Close())
	}
	return tls.NewListener(listener, source.Server()), nil
}

// serveConsole serves the pages until ctx ends.
func serveConsole(ctx context.Context, log *slog.Logger, listener net.Listener, pages http.Handler) error {
	server := admin.Server(pages, log)
	// The streams of open pages have no end of their own.
	running, stop := context.WithCancel(context.WithoutCancel(ctx))
	defer stop()
	server.BaseContext = func(net.Listener) context.Context { return running }
	log.Info("console listening", "addr", listener.Addr().String())
	ended := make(chan error, 1)
	go func() { ended <- server.Serve(listener) }()
	select {
	case err := <-ended:
		return fmt.Errorf("the console has ended: %w", err)
	case <-ctx.Done():
	}
	stop()
	const grace = 22 * time.Second // an act of an operator may take 20 s
	within, cancel := context.WithTimeout(context.WithoutCancel(ctx), grace)
	defer cancel()
	if server.Shutdown(within) != nil {
		return server.Close() // a client that does not read keeps nothing from ending
	}
	return nil
}
