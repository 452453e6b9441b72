package address

import (
	"context"
	"errors"
	"fmt"
	"strings"

	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"

	"github.com/semel-go/semel/consume"
	"github.com/semel-go/semel/consume/driver"
	"github.com/semel-go/semel/consume/semelnats"
)

// parseNATS reads nats://HOST:PORT,…/STREAM/CONSUMER.
func parseNATS(a *address, o *Options) (*Broker, error) {
	if len(a.path) != 2 || a.path[0] == "" || a.path[1] == "" {
		return nil, errors.New("must name a stream and a durable consumer: nats://HOST:4222/STREAM/CONSUMER")
	}
	connect, err := a.natsClient("semel-deliver")
	if err != nil {
		return nil, err
	}
	s := &semelnats.Options{DeadLetters: o.DeadLetters, Quarantine: o.Quarantine}
	if o.Order != "" && o.Order != "none" {
		bySubject := func(m *consume.Message) string { return m.Origin.Topic }
		if s.OrderKey, err = order(o, map[string]func(*consume.Message) string{"none": none, "subject": bySubject}); err != nil {
			return nil, err
		}
	}
	stream, durable, group := a.path[0], a.path[1], o.Group
	if group == "" {
		group = durable
	}
	return &Broker{Group: group, open: func(ctx context.Context) (driver.Source, func() error, error) {
		conn, err := connect()
		if err != nil {
			return nil, nil, err
		}
		src, err := openNATS(ctx, conn, stream, durable, s)
		if err != nil {
			conn.Close()
			return nil, nil, err
		}
		return src, func() error { conn.Close(); return nil }, nil
	}}, nil
}

// natsClient returns a function that connects.
func (a *address) natsClient(name string) (connect func() (*nats.Conn, error), err error) {
	hosts, err := a.addresses("4222")
	if err != nil {
		return nil, err
	}
	opts := []nats.Option{nats.Name(name), nats.MaxReconnects(-1)}
	switch {
	case a.hasUser && a.password == "":
		opts = append(opts, nats.Token(a.user))
	case a.hasUser:
		opts = append(opts, nats.UserInfo(a.user, a.password))
	}
	if file := a.take("creds"); file != "" {
		opts = append(opts, nats.UserCredentials(file))
	}
	cfg, err := a.tls()
	if err != nil {
		return nil, err
	}
	if cfg != nil {
		opts = append(opts, nats.Secure(cfg))
	}
	return func() (*nats.Conn, error) {
		conn, err := nats.Connect("nats://"+strings.Join(hosts, ",nats://"), opts...)
		if err != nil {
			return nil, noConnection(hosts, err)
		}
		return conn, nil
	}, nil
}

// noConnection adds the next step to the error of a connection.
func noConnection(hosts []string, err error) error {
	return fmt.Errorf("no connection: %w; see whether the server runs at %s, and check the user, the password and tls", err, strings.Join(hosts, ", "))
}

func openNATS(ctx context.Context, conn *nats.Conn, stream, durable string, o *semelnats.Options) (driver.Source, error) {
	js, err := jetstream.New(conn)
	if err != nil {
		return nil, err
	}
	c, err := js.Consumer(ctx, stream, durable)
	noStream, noConsumer := errors.Is(err, jetstream.ErrStreamNotFound), errors.Is(err, jetstream.ErrConsumerNotFound)
	switch {
	case err == nil:
		return semelnats.New(js, c, o)
	case !noStream && !noConsumer:
		return nil, err
	}
	var errs []error
	if noStream {
		errs = append(errs, fmt.Errorf("stream %q does not exist; create it with: nats stream add %s --subjects 'SUBJECTS' --max-age 7d --defaults, with the subjects of its messages: %w", stream, stream, err))
	}
	errs = append(errs, fmt.Errorf("consumer %q of stream %q does not exist; create it with: nats consumer add %s %s --pull --ack explicit --max-deliver=-1 --max-pending 5000 --defaults: %w",
		durable, stream, stream, durable, jetstream.ErrConsumerNotFound))
	return nil, errors.Join(append(errs, semelnats.CheckCopies(ctx, js, stream, durable, o))...)
}
