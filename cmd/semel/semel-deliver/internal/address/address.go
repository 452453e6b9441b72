// Package address reads the addresses of brokers and of other destinations. [Parse] reads
// --from of "semel deliver", from which messages are taken, and [ParseSink] reads --to of
// "semel outbox publish", to which they are sent.
package address

import (
	"context"
	"crypto/tls"
	"crypto/x509"
	"errors"
	"fmt"
	"maps"
	"net"
	"net/url"
	"os"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/semel-go/semel/cmd/semel/internal/input"
	"github.com/semel-go/semel/consume/driver"
)

// kind is a kind of broker: it reads the rest of an address, without I/O.
type kind func(a *address, o *Options) (*Broker, error)

// kinds are the brokers by the scheme of their address. A new one is one line here and
// one in Choices.
var kinds = map[string]kind{
	"kafka":      parseKafka,
	"amqp":       parseAMQP,
	"amqps":      parseAMQP,
	"nats":       parseNATS,
	"sqs":        parseSQS,
	"pulsar":     parsePulsar,
	"pulsar+ssl": parsePulsar,
}

// Choices explains the addresses, for the help.
const Choices = `kafka://HOST:PORT,HOST:PORT/TOPIC,TOPIC    with --group, the consumer group
             start=earliest|latest         of a new group (default earliest)
             out-of-range=refuse|earliest|latest   if the offset was deleted unread
             sasl=plain|scram-sha-256|scram-sha-512   for USER:PASSWORD@ before HOST
             session-timeout=TIME          until a dead member's messages go to another
                                           (default 45s)
             instance-id=NAME              static membership: a restart within that time
                                           gets its messages back at once
amqp://USER:PASSWORD@HOST:5672/VHOST?queue=NAME    also amqps://
             declare=copies|all|nothing    which missing queues are made
             kind=quorum|classic           of queues that are made
             single-active=true            one consumer at a time keeps the order
             prefetch=N                    at most N messages are here, also with
                                           large bodies
nats://HOST:4222/STREAM/CONSUMER           a durable pull consumer
             creds=FILE                    credentials
sqs://QUEUE?region=NAME                    credentials from AWS's usual places
             endpoint=URL, visibility=TIME
pulsar://HOST:6650,HOST/TOPIC?subscription=NAME   also pulsar+ssl:// (port 6651) and
                                           /TENANT/NAMESPACE/TOPIC
             type=key-shared|shared|failover|exclusive   of the subscription; all
                                           members must have the same
             start=earliest|latest         of a new subscription (default earliest)
             token-file=FILE               read at each connection; also TOKEN@ or
                                           USER:PASSWORD@ before HOST
             timeout=TIME                  of a request, also at the start (default 30s)
             receiver-queue=N              messages taken ahead for each partition
                                           (default 100)
             listener=NAME                 the listener that the brokers advertise
all          tls=true, ca=FILE, cert=FILE, key=FILE (not sqs)
             horizon=TIME                  the greatest age of a message (kafka, amqp,
                                           pulsar)`

// Options are the flags that a source needs.
type Options struct {
	Group                   string // empty: not given
	DeadLetters, Quarantine string // empty: the adapter's own
	Order                   string // empty: the broker's own
	InFlight                int    // how many messages the consumer takes
}

// Broker is a checked address of a broker.
type Broker struct {
	// Group is the name of the consumer group, under which keys are kept.
	Group string
	// Kind is kafka, amqp, nats, sqs or pulsar.
	Kind string

	shown string
	open  func(ctx context.Context) (driver.Source, func() error, error)
}

// String is the address without a password and without its query.
func (b *Broker) String() string { return b.shown }

// Open makes the source. The caller closes it after Serve.
func (b *Broker) Open(ctx context.Context) (src driver.Source, closeSource func() error, err error) {
	src, closeSource, err = b.open(ctx)
	if err != nil {
		return nil, nil, fmt.Errorf("--from: %s: %w", b.shown, err)
	}
	return src, closeSource, nil
}

// address is an address in parts. Package url refuses several hosts.
type address struct {
	scheme, rest   string // rest is everything after ://, for http and https only
	user, password string
	hasUser        bool
	hosts          []string
	path           []string
	query          url.Values
}

// Parse reads an address. It does no I/O but for the files that it names.
func Parse(text string, o *Options) (*Broker, error) {
	bad := func(value, want string) error { return &input.Error{Field: "--from", Value: value, Want: want} }
	scheme, rest, ok := strings.Cut(text, "://")
	parse := kinds[scheme]
	switch {
	case text == "":
		return nil, bad("", "is required: the broker, such as kafka://127.0.0.1:9092/orders, amqp://127.0.0.1?queue=orders, nats://127.0.0.1/ORDERS/billing, sqs://orders?region=eu-west-1 or pulsar://127.0.0.1/orders?subscription=billing")
	case !ok || parse == nil:
		return nil, bad(scheme, "is no broker; choose "+schemes(kinds)+", such as kafka://127.0.0.1:9092/orders")
	}
	b, a, err := read("--from", scheme, rest, func(a *address) (*Broker, error) { return parse(a, o) })
	if err != nil {
		return nil, err
	}
	b.Kind, b.shown = scheme, a.String()
	switch scheme {
	case "amqps":
		b.Kind = "amqp"
	case "pulsar+ssl":
		b.Kind = "pulsar"
	}
	return b, nil
}

// read splits an address, and refuses the options that its parser has not taken.
func read[T any](flag, scheme, rest string, parse func(*address) (T, error)) (parsed T, a *address, err error) {
	bad := func(value, want string) error { return &input.Error{Field: flag, Value: value, Want: want} }
	if a, err = split(scheme, rest); err != nil {
		return parsed, nil, bad(scheme+"://…", err.Error())
	}
	if parsed, err = parse(a); err != nil {
		if !input.Is(err) {
			err = bad(a.String(), err.Error())
		}
		return parsed, nil, err
	}
	for name := range a.query {
		return parsed, nil, bad(name, "is no option of "+scheme+"://; see the help for the options of each broker")
	}
	return parsed, a, nil
}

func schemes[T any](kinds map[string]T) string {
	return strings.Join(slices.Sorted(maps.Keys(kinds)), "://, ") + "://"
}

// split cuts an address into its parts.
func split(scheme, rest string) (*address, error) {
	a := &address{scheme: scheme}
	rest, query, _ := strings.Cut(rest, "?")
	var err error
	if a.query, err = url.ParseQuery(query); err != nil {
		return nil, errors.New("has a query that cannot be read; write special characters as %XX")
	}
	for name, values := range a.query {
		if len(values) > 1 {
			return nil, fmt.Errorf("has %s twice; give it once", name)
		}
	}
	authority, path, _ := strings.Cut(rest, "/")
	if i := strings.LastIndexByte(authority, '@'); i >= 0 {
		user, password, _ := strings.Cut(authority[:i], ":")
		a.hasUser, authority = true, authority[i+1:]
		if a.user, err = url.PathUnescape(user); err == nil {
			a.password, err = url.PathUnescape(password)
		}
		if err != nil {
			return nil, errors.New("has a user or a password that cannot be read; write special characters as %XX")
		}
	}
	if a.hosts = strings.Split(authority, ","); slices.Contains(a.hosts, "") {
		return nil, errors.New("has no host, or an empty one in the list")
	}
	for part := range strings.SplitSeq(strings.TrimSuffix(path, "/"), "/") {
		if part, err = url.PathUnescape(part); err != nil {
			return nil, errors.New("has a path that cannot be read; write special characters as %XX")
		}
		if path != "" {
			a.path = append(a.path, part)
		}
	}
	return a, nil
}

// String is the address without user, password and query.
func (a *address) String() string {
	return a.scheme + "://" + strings.Join(append([]string{strings.Join(a.hosts, ",")}, a.path...), "/")
}

// take removes an option and returns its value; empty: it is not given.
func (a *address) take(name string) string {
	v := a.query.Get(name)
	a.query.Del(name)
	return v
}

// choose removes an option that is one of some values. The first is the default.
func choose[T any](a *address, name string, values ...choice[T]) (T, error) {
	v := a.take(name)
	if v == "" {
		return values[0].means, nil
	}
	var names []string
	for _, c := range values {
		if c.name == v {
			return c.means, nil
		}
		names = append(names, c.name)
	}
	return values[0].means, fmt.Errorf("has %s=%s; choose %s", name, v, strings.Join(names, ", "))
}

type choice[T any] struct {
	name  string
	means T
}

// span removes an option that is a time.
func (a *address) span(name string) (time.Duration, error) {
	v := a.take(name)
	if v == "" {
		return 0, nil
	}
	d, err := time.ParseDuration(v)
	if err != nil || d <= 0 {
		return 0, fmt.Errorf("has %s=%s; write a time such as 30s or 168h", name, v)
	}
	return d, nil
}

// addresses are the hosts with ports.
func (a *address) addresses(port string) (list []string, err error) {
	for _, host := range a.hosts {
		if _, _, err := net.SplitHostPort(host); err != nil {
			host = net.JoinHostPort(strings.Trim(host, "[]"), port)
		}
		_, p, err := net.SplitHostPort(host)
		if _, perr := strconv.ParseUint(p, 10, 16); err != nil || perr != nil {
			return nil, fmt.Errorf("has the host %q, which is none; write host:port, such as 127.0.0.1:%s", host, port)
		}
		list = append(list, host)
	}
	return list, nil
}

// tls removes the options of TLS. It returns nil if TLS is not asked for.
func (a *address) tls() (*tls.Config, error) {
	ca, cert, key := a.take("ca"), a.take("cert"), a.take("key")
	on, err := choose(a, "tls", choice[bool]{"false", false}, choice[bool]{"true", true})
	if err != nil {
		return nil, err
	}
	if !on && ca == "" && cert == "" && key == "" {
		return nil, nil
	}
	cfg := &tls.Config{MinVersion: tls.VersionTLS12}
	if ca != "" {
		pem, err := os.ReadFile(ca)
		if err != nil {
			return nil, fmt.Errorf("has ca=%s: %s", ca, input.Unreadable(err, ""))
		}
		if cfg.RootCAs = x509.NewCertPool(); !cfg.RootCAs.AppendCertsFromPEM(pem) {
			return nil, fmt.Errorf("has ca=%s, which has no certificate in PEM form", ca)
		}
	}
	if cert != "" || key != "" {
		pair, err := tls.LoadX509KeyPair(cert, key)
		if err != nil {
			return nil, fmt.Errorf("has cert=%s and key=%s, which cannot be used together: %w", cert, key, input.UnreadableFile(err))
		}
		cfg.Certificates = []tls.Certificate{pair}
	}
	return cfg, nil
}
