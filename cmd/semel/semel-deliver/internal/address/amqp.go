package address

import (
	"context"
	"errors"
	"net/url"
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
	var errs [5]error
	s.Declare, errs[0] = choose(a, "declare", choice[semelamqp.Declare]{"copies", semelamqp.DeclareCopies},
		choice[semelamqp.Declare]{"all", semelamqp.DeclareAll}, choice[semelamqp.Declare]{"nothing", semelamqp.DeclareNothing})
	s.Kind, errs[1] = choose(a, "kind", choice[semelamqp.Kind]{"quorum", semelamqp.Quorum}, choice[semelamqp.Kind]{"classic", semelamqp.Classic})
	s.SingleActive, errs[2] = choose(a, "single-active", choice[bool]{"false", false}, choice[bool]{"true", true})
	s.Horizon, errs[3] = a.span("horizon")
	address, config, err := a.amqpClient("semel-deliver")
	s.Config, errs[4] = config, err
	if err := errors.Join(errs[:]...); err != nil {
		return nil, err
	}
	if o.Order != "" && o.Order != "none" {
		s.Prefetch = min(waitingShare*o.InFlight, 65535)
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
