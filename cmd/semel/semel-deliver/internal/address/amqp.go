package address

import (
	"context"
	"errors"
	"fmt"
	"net/url"
	"strconv"
	"strings"

	amqp "github.com/rabbitmq/amqp091-go"

	"github.com/semel-go/semel/consume"
	"github.com/semel-go/semel/consume/driver"
	"github.com/semel-go/semel/consume/semelamqp"
)

// waitingShare is how many messages the consumer can have with an order, in multiples of its
// InFlight: those that run, and 16 times as many that wait. RabbitMQ is told once, when
// the first request may ask for fewer, because of --max-bytes.
const waitingShare = 17

// parseAMQP reads amqp://USER:PASSWORD@HOST/VHOST?queue=NAME.
func parseAMQP(a *address, o *Options) (*Broker, error) {
	queue := a.take("queue")
	if queue == "" {
		return nil, errors.New("must name the queue: amqp://HOST/VHOST?queue=NAME")
	}
	s := &semelamqp.Options{DeadLetters: o.DeadLetters, Quarantine: o.Quarantine}
	var errs [6]error
	s.Declare, errs[0] = choose(a, "declare", choice[semelamqp.Declare]{"copies", semelamqp.DeclareCopies},
		choice[semelamqp.Declare]{"all", semelamqp.DeclareAll}, choice[semelamqp.Declare]{"nothing", semelamqp.DeclareNothing})
	s.Kind, errs[1] = choose(a, "kind", choice[semelamqp.Kind]{"quorum", semelamqp.Quorum}, choice[semelamqp.Kind]{"classic", semelamqp.Classic})
	s.SingleActive, errs[2] = choose(a, "single-active", choice[bool]{"false", false}, choice[bool]{"true", true})
	s.Horizon, errs[3] = a.span("horizon")
	address, config, err := a.amqpClient("semel-deliver")
	s.Config, errs[4] = config, err
	s.Prefetch, errs[5] = a.prefetch(o)
	if err := errors.Join(errs[:]...); err != nil {
		return nil, err
	}
	if o.Order != "" && o.Order != "none" {
		if s.OrderKey, err = order(o, map[string]func(*consume.Message) string{"none": none, "routing-key": semelamqp.ByRoutingKey}); err != nil {
			return nil, err
		}
	}
	if _, err := semelamqp.New(address, queue, s); err != nil {
		return nil, err
	}
	group := o.Group
	if group == "" {
		group = queue
	}
	a.path = append(a.path, queue) // for people
	return &Broker{Group: group, open: func(context.Context) (driver.Source, func() error, error) {
		s, err := semelamqp.New(address, queue, s)
		if err != nil {
			return nil, nil, err
		}
		return s, s.Close, nil
	}}, nil
}

// prefetch is how many messages the broker may send before their acks. Zero: as many as the
// adapter needs for the messages that it is asked for, and up to twice as many.
func (a *address) prefetch(o *Options) (int, error) {
	const most = 65535 // of AMQP
	n, err := a.number("prefetch", most)
	if n == 0 && err == nil && o.Order != "" && o.Order != "none" {
		n = min(waitingShare*o.InFlight, most)
	}
	return n, err
}

// number removes an option that is a number from 1. Zero: it is not there. The adapter checks
// the limit.
func (a *address) number(name string, limit int) (int, error) {
	v := a.take(name)
	if v == "" {
		return 0, nil
	}
	n, err := strconv.Atoi(v)
	if err != nil || n < 1 {
		return 0, fmt.Errorf("has %s=%s; write a number from 1 to %d", name, v, limit)
	}
	return n, nil
}

// amqpClient is the address for the client, and its configuration.
func (a *address) amqpClient(name string) (address string, config amqp.Config, err error) {
	if len(a.hosts) > 1 {
		return "", config, errors.New("has several hosts; give one, or the name of a load balancer")
	}
	if config.TLSClientConfig, err = a.tls(); err != nil {
		return "", config, err
	}
	if config.TLSClientConfig != nil {
		a.scheme = "amqps"
	}
	config.Properties = amqp.NewConnectionProperties()
	config.Properties.SetClientConnectionName(name)
	return a.amqpURL(), config, nil
}

// amqpURL is the address for the client, with the options that this package does not
// know. The client reads them.
func (a *address) amqpURL() string {
	u := url.URL{Scheme: a.scheme, Host: a.hosts[0], Path: "/"}
	if a.hasUser {
		u.User = url.UserPassword(a.user, a.password)
	}
	if len(a.path) > 0 {
		vhost := strings.Join(a.path, "/")
		u.Path, u.RawPath = "/"+vhost, "/"+url.PathEscape(vhost)
	}
	known := url.Values{}
	for _, name := range []string{"heartbeat", "connection_timeout", "channel_max", "auth_mechanism", "frame_max"} {
		if v := a.take(name); v != "" {
			known.Set(name, v)
		}
	}
	u.RawQuery = known.Encode()
	return u.String()
}
