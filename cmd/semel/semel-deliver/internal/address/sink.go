package address

import (
	"context"
	"fmt"
	"net/http"
	"strings"
	"time"

	"github.com/semel-go/semel/cmd/semel/internal/input"
	"github.com/semel-go/semel/outbox"
)

// sinkKinds are the destinations by the scheme of their address. A new one is one line
// here and one in SinkChoices.
var sinkKinds = map[string]func(a *address, o *SinkOptions) (*Sink, error){
	"kafka": parseKafkaSink,
	"amqp":  parseAMQPSink,
	"amqps": parseAMQPSink,
	"nats":  parseNATSSink,
	"sqs":   parseSQSSink,
	"http":  parseWebhook,
	"https": parseWebhook,
}

// SinkChoices explains the addresses of destinations, for the help.
const SinkChoices = `kafka://HOST:PORT,HOST:PORT            a topic is a topic; the order key is the record's key
             sasl=plain|scram-sha-256|scram-sha-512   for USER:PASSWORD@ before HOST
amqp://USER:PASSWORD@HOST:5672/VHOST   a topic is a queue; also amqps://
             exchange=NAME                 a topic is a routing key of this exchange
nats://HOST:4222                       a topic is a subject that a stream takes
             creds=FILE                    credentials
sqs://?region=NAME                     a topic is the name or the URL of a queue;
             endpoint=URL                  credentials come from AWS's usual places
http://HOST/PATH, https://HOST/PATH    each message is a POST to this URL
Apache Pulsar        only from a program in Go: semelpulsar.NewSink
kafka, amqp, nats    tls=true, ca=FILE, cert=FILE, key=FILE`

// SinkOptions are the flags that destinations of HTTP need.
type SinkOptions struct {
	Secret  []byte // signs the requests; nil: they are not signed
	Header  http.Header
	Timeout time.Duration
	// Transport sends the requests. It may be set after ParseSink.
	Transport http.RoundTripper
}

// Sink is a checked address of a destination.
type Sink struct {
	// Kind is kafka, amqp, nats, sqs or http.
	Kind string

	flag, shown string
	open        func(ctx context.Context) (outbox.Sink, func() error, error)
}

// String is the address without a user, a password and a query.
func (s *Sink) String() string { return s.shown }

// openTime is how long a destination may take to answer at the start.
const openTime = 15 * time.Second

// Open makes the sink after the destination has answered, so that a wrong address or a
// wrong password is not taken for an outage. The caller closes the sink.
func (s *Sink) Open(ctx context.Context) (sink outbox.Sink, closeSink func() error, err error) {
	ctx, cancel := context.WithTimeout(ctx, openTime)
	defer cancel()
	if sink, closeSink, err = s.open(ctx); err != nil {
		return nil, nil, fmt.Errorf("%s: %s: %w", s.flag, s.shown, err)
	}
	return sink, closeSink, nil
}

// ParseSink reads the address of a destination. It does no I/O but for the files that it
// names. Flag names the option in errors.
func ParseSink(text, flag string, o *SinkOptions) (*Sink, error) {
	scheme, rest, ok := strings.Cut(text, "://")
	parse := sinkKinds[scheme]
	if scheme == "pulsar" || scheme == "pulsar+ssl" {
		return nil, &input.Error{Field: flag, Value: scheme, Want: "is no destination of this command; a program in Go sends to Pulsar: semelpulsar.NewSink"}
	}
	if !ok || parse == nil {
		return nil, &input.Error{Field: flag, Value: scheme, Want: "is no destination; choose " + schemes(sinkKinds) + ", such as kafka://127.0.0.1:9092 or https://example.org/hook"}
	}
	if isHTTP(scheme) { // its query is its own
		s, err := parse(&address{scheme: scheme, rest: rest}, o)
		if err != nil {
			return nil, &input.Error{Field: flag, Want: err.Error()}
		}
		s.Kind, s.flag = "http", flag
		return s, nil
	}
	if scheme == "sqs" && (rest == "" || rest[0] == '?') {
		rest = "sqs" + rest // an address has a host
	}
	s, a, err := read(flag, scheme, rest, func(a *address) (*Sink, error) { return parse(a, o) })
	if err != nil {
		return nil, err
	}
	s.Kind, s.flag, s.shown = scheme, flag, a.String()
	switch scheme {
	case "amqps":
		s.Kind = "amqp"
	case "sqs":
		s.shown = "sqs://"
	}
	return s, nil
}

func isHTTP(scheme string) bool { return scheme == "http" || scheme == "https" }

// noClose is for a sink that has nothing to close.
func noClose() error { return nil }
