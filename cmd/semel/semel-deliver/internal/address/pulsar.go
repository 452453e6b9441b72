package address

import (
	"bytes"
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"os"
	"strings"
	"time"

	"github.com/apache/pulsar-client-go/pulsar"
	pulsarlog "github.com/apache/pulsar-client-go/pulsar/log"

	"github.com/semel-go/semel/cmd/semel/internal/input"
	"github.com/semel-go/semel/consume"
	"github.com/semel-go/semel/consume/driver"
	"github.com/semel-go/semel/consume/semelpulsar"
)

// parsePulsar reads pulsar://HOST:PORT,…/TOPIC?subscription=NAME.
func parsePulsar(a *address, o *Options) (*Broker, error) {
	topic := strings.Join(a.path, "/")
	if n := len(a.path); n != 1 && n != 3 || strings.Contains("/"+topic+"/", "//") {
		return nil, errors.New("must name one topic after the hosts: pulsar://HOST:6650/TOPIC?subscription=NAME or pulsar://HOST:6650/TENANT/NAMESPACE/TOPIC?subscription=NAME")
	}
	subscription := a.take("subscription")
	if subscription == "" {
		return nil, errors.New("must name the subscription: pulsar://HOST:6650/TOPIC?subscription=NAME")
	}
	s := &semelpulsar.Options{DeadLetters: o.DeadLetters, Quarantine: o.Quarantine}
	var errs [4]error
	s.Type, errs[0] = choose(a, "type", choice[pulsar.SubscriptionType]{"key-shared", pulsar.KeyShared}, choice[pulsar.SubscriptionType]{"shared", pulsar.Shared},
		choice[pulsar.SubscriptionType]{"failover", pulsar.Failover}, choice[pulsar.SubscriptionType]{"exclusive", pulsar.Exclusive})
	s.Latest, errs[1] = choose(a, "start", choice[bool]{"earliest", false}, choice[bool]{"latest", true})
	s.Horizon, errs[2] = a.span("horizon")
	s.ReceiverQueue, errs[3] = a.number("receiver-queue", 10000)
	client, err := a.pulsarClient()
	if err := errors.Join(append(errs[:], err)...); err != nil {
		return nil, err
	}
	if s.OrderKey, err = pulsarOrder(o); err != nil {
		return nil, err
	}
	if _, err := semelpulsar.New(noClient{}, topic, subscription, s); err != nil {
		return nil, err
	}
	group := o.Group
	if group == "" {
		group = subscription
	}
	a.path = append(a.path, subscription) // for people
	return &Broker{Group: group, open: func(context.Context) (driver.Source, func() error, error) {
		c, err := pulsar.NewClient(client)
		if err != nil {
			return nil, nil, err
		}
		src, err := semelpulsar.New(c, topic, subscription, s)
		if err != nil {
			c.Close()
			return nil, nil, err
		}
		return src, func() error { closeWithin(c, closeWait); return nil }, nil
	}}, nil
}

// noClient is a client that checks of options do not use.
type noClient struct{ pulsar.Client }

// The time limits of the client.
const (
	connectTimeout = 5 * time.Second
	closeWait      = 5 * time.Second
)

// pulsarClient are the options of the client.
func (a *address) pulsarClient() (c pulsar.ClientOptions, err error) {
	c.Logger = pulsarlog.DefaultNopLogger() // its lines are not in the form of this program's
	c.Description = "semel-deliver"
	c.ListenerName = a.take("listener")
	var errs [4]error
	c.OperationTimeout, errs[0] = a.span("timeout")
	c.ConnectionTimeout = connectTimeout
	if c.OperationTimeout > 0 {
		c.ConnectionTimeout = min(connectTimeout, c.OperationTimeout)
	}
	c.Authentication, errs[1] = a.pulsarLogin()
	c.TLSConfig, errs[2] = a.tls()
	scheme, port := "pulsar", "6650"
	if a.scheme == "pulsar+ssl" || c.TLSConfig != nil {
		a.scheme, scheme, port = "pulsar+ssl", "pulsar+ssl", "6651"
		if c.TLSConfig == nil {
			c.TLSConfig = &tls.Config{MinVersion: tls.VersionTLS12}
		}
	}
	hosts, err := a.addresses(port)
	errs[3] = err
	c.URL = scheme + "://" + strings.Join(hosts, ",")
	return c, errors.Join(errs[:]...)
}

// pulsarLogin is how the client logs in; nil: it does not. It does not remove cert and key.
func (a *address) pulsarLogin() (pulsar.Authentication, error) {
	file, cert, key := a.take("token-file"), a.query.Get("cert"), a.query.Get("key")
	switch {
	case a.hasUser && file != "":
		return nil, errors.New("has a user and token-file; give one of them")
	case a.hasUser && a.password == "":
		return pulsar.NewAuthenticationToken(a.user), nil
	case a.hasUser:
		return pulsar.NewAuthenticationBasic(a.user, a.password)
	case file != "":
		token, err := os.ReadFile(file)
		if err != nil {
			return nil, fmt.Errorf("has token-file=%s: %s", file, input.Unreadable(err, ""))
		}
		if len(bytes.TrimSpace(token)) == 0 {
			return nil, fmt.Errorf("has token-file=%s, which is empty", file)
		}
		return pulsar.NewAuthenticationTokenFromFile(file), nil
	case cert != "" && key != "":
		return pulsar.NewAuthenticationTLS(cert, key), nil
	}
	return nil, nil
}

// pulsarOrder is the rule of order; nil: the adapter's own for the type of subscription.
func pulsarOrder(o *Options) (func(m *consume.Message, key string) string, error) {
	if o.Order == "" {
		return nil, nil
	}
	if o.Order == "key" {
		return semelpulsar.ByKey, nil
	}
	byPartition := func(m *consume.Message) string { return semelpulsar.ByPartition(m, "") }
	byMessage, err := order(o, map[string]func(*consume.Message) string{"none": none, "key": nil, "partition": byPartition})
	if err != nil {
		return nil, err
	}
	return func(m *consume.Message, _ string) string { return byMessage(m) }, nil
}

// closeWithin closes a client. A client that has lost its broker waits for answers, so that
// closeWithin leaves it after the limit, to the end of the process.
func closeWithin(c pulsar.Client, limit time.Duration) {
	closed := make(chan struct{})
	go func() {
		c.Close()
		close(closed)
	}()
	select {
	case <-closed:
	case <-time.After(limit):
	}
}
