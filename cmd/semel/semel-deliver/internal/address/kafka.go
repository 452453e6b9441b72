package address

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/twmb/franz-go/pkg/kgo"
	"github.com/twmb/franz-go/pkg/sasl"
	"github.com/twmb/franz-go/pkg/sasl/plain"
	"github.com/twmb/franz-go/pkg/sasl/scram"

	"github.com/semel-go/semel/cmd/semel/internal/input"
	"github.com/semel-go/semel/consume"
	"github.com/semel-go/semel/consume/driver"
	"github.com/semel-go/semel/consume/semelkafka"
)

// parseKafka reads kafka://HOST:PORT,…/TOPIC,….
func parseKafka(a *address, o *Options) (*Broker, error) {
	if len(a.path) != 1 {
		return nil, errors.New("must name the topics after the hosts: kafka://HOST:PORT/TOPIC or kafka://HOST:PORT/TOPIC,TOPIC")
	}
	topics := strings.Split(a.path[0], ",")
	if slices.Contains(topics, "") {
		return nil, errors.New("has an empty topic in its list")
	}
	if o.Group == "" {
		return nil, &input.Error{Field: "--group", Want: "is required with kafka://: the consumer group, such as billing"}
	}
	k, err := a.kafkaOptions(o)
	if err != nil {
		return nil, err
	}
	return &Broker{Group: o.Group, open: func(context.Context) (driver.Source, func() error, error) {
		s, err := semelkafka.New(o.Group, topics, k)
		if err != nil {
			return nil, nil, err
		}
		return s, s.Close, nil
	}}, nil
}

// leastOutstanding is the default of semelkafka.Options.Outstanding.
const leastOutstanding = 1000

// kafkaOptions reads the options of the source. A message that waits stops its partition only
// when as many messages as the consumer may hold are read after it.
func (a *address) kafkaOptions(o *Options) (*semelkafka.Options, error) {
	client, err := a.kafkaClient()
	if err != nil {
		return nil, err
	}
	k := &semelkafka.Options{
		DeadLetters: o.DeadLetters, Quarantine: o.Quarantine, Client: client,
		Outstanding: max(leastOutstanding, waitingShare*o.InFlight),
	}
	var errs [4]error
	k.Start, errs[0] = choose(a, "start", choice[semelkafka.Position]{"earliest", semelkafka.Earliest}, choice[semelkafka.Position]{"latest", semelkafka.Latest})
	k.OutOfRange, errs[1] = choose(a, "out-of-range", choice[semelkafka.Position]{"refuse", semelkafka.Refuse},
		choice[semelkafka.Position]{"earliest", semelkafka.Earliest}, choice[semelkafka.Position]{"latest", semelkafka.Latest})
	k.Horizon, errs[2] = a.span("horizon")
	session, err := a.span("session-timeout")
	errs[3] = err
	if session > 0 {
		k.Client = append(k.Client, kgo.SessionTimeout(session), kgo.HeartbeatInterval(min(3*time.Second, session/3)))
	}
	if id := a.take("instance-id"); id != "" {
		k.Client = append(k.Client, kgo.InstanceID(id))
	}
	if err := errors.Join(errs[:]...); err != nil {
		return nil, err
	}
	k.OrderKey, err = kafkaOrder(o)
	return k, err
}

// kafkaClient is the hosts, TLS and the login as options of a client.
func (a *address) kafkaClient() ([]kgo.Opt, error) {
	hosts, err := a.addresses("9092")
	if err != nil {
		return nil, err
	}
	cfg, terr := a.tls()
	mechanism, serr := a.sasl()
	if err := errors.Join(terr, serr); err != nil {
		return nil, err
	}
	opts := []kgo.Opt{kgo.SeedBrokers(hosts...)}
	if cfg != nil {
		opts = append(opts, kgo.DialTLSConfig(cfg))
	}
	if mechanism != nil {
		opts = append(opts, kgo.SASL(mechanism))
	}
	return opts, nil
}

// kafkaOrder is the rule of order; nil: by the record's key.
func kafkaOrder(o *Options) (func(m *consume.Message, key []byte) string, error) {
	if o.Order == "" {
		return nil, nil
	}
	byMessage, err := order(o, map[string]func(*consume.Message) string{"none": none, "key": nil})
	if err != nil || byMessage == nil {
		return nil, err
	}
	return func(m *consume.Message, _ []byte) string { return byMessage(m) }, nil
}

// sasl is the way to log in; nil: there is no user.
func (a *address) sasl() (sasl.Mechanism, error) {
	login := scram.Auth{User: a.user, Pass: a.password}
	name := a.take("sasl")
	switch {
	case name != "" && !a.hasUser:
		return nil, fmt.Errorf("has sasl=%s, but no user; write kafka://USER:PASSWORD@HOST", name)
	case !a.hasUser:
		return nil, nil
	}
	switch name {
	case "plain":
		return plain.Auth{User: a.user, Pass: a.password}.AsMechanism(), nil
	case "scram-sha-256":
		return login.AsSha256Mechanism(), nil
	case "scram-sha-512":
		return login.AsSha512Mechanism(), nil
	}
	return nil, errors.New("has a user, but sasl is not one of plain, scram-sha-256 and scram-sha-512; add it to the query")
}
