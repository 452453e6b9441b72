package cli

import (
	"fmt"
	"log/slog"
	"reflect"

	"github.com/semel-go/semel/cmd/semel/internal/config"
	"github.com/semel-go/semel/cmd/semel/semel-deliver/internal/event"
	"github.com/semel-go/semel/store"
)

// commonOptions are flags of each command.
type commonOptions struct {
	JSON      bool        `name:"json" help:"Write logs as JSON."`
	ShowBuild versionFlag `name:"version" help:"Print the version and exit."`
	LogLevel  slog.Level  `name:"log-level" placeholder:"LEVEL" default:"info" help:"debug, info (default), warn or error."`
}

// options are the flags. A flag that semel proxy has, too, has the same name and
// meaning here.
type options struct {
	commonOptions

	From             string `name:"from" placeholder:"URL" group:"Where" help:"The broker, and what to take from it; see above. Required."`
	To               string `name:"to" placeholder:"URL" group:"Where" help:"The service that gets each message as a POST, such as http://127.0.0.1:3000/events. Required."`
	Store            string `name:"store" placeholder:"URL" default:"sqlite:semel.db" group:"Where" help:"Where the records are kept: sqlite:PATH (default ${default}), postgres://USER@HOST/DATABASE, redis://HOST:PORT/0, dynamodb://TABLE?region=REGION or memory: (lost with the process; only for one replica and trials)."`
	Keys             string `name:"encryption-keys" placeholder:"FILE" group:"Where" help:"Keys that encrypt what the store keeps of messages and answers, as for semel proxy (default: nothing is encrypted). Read again when it changes."`
	RequireEncrypted bool   `name:"require-encrypted" group:"Where" help:"Refuse records in clear text: once no record from before --encryption-keys is left."`
	HashKeysFile     string `name:"hash-keys-file" placeholder:"FILE" group:"Where" help:"A secret with which tenants and keys are hashed before they are stored, as for semel proxy; the service gets the hash as Idempotency-Key. Read at the start only: with another secret, or with none, every key is new and its message is sent again (default: they are stored as they are)."`
	AdminListen      string `name:"admin-listen" placeholder:"ADDR" group:"Where" help:"Address of /healthz, /readyz and /metrics, such as 127.0.0.1:9090 (default: none). Keep it private."`

	Group      string   `name:"group" placeholder:"NAME" group:"Whose keys" help:"The name that keys are kept under, and the consumer group of Kafka. Two services that get the same messages need two groups (default: the consumer of NATS, the queue of RabbitMQ or SQS, the subscription of Pulsar; required with kafka://)."`
	Key        []string `name:"key" placeholder:"SOURCE,…" default:"header:idempotency-key,cloudevent" group:"Whose keys" help:"Where a message has its key; the first that finds one decides (default ${default}); see above. A message without a key goes to the dead letters."`
	Scope      string   `name:"scope" placeholder:"RULE" default:"single" group:"Whose keys" help:"To whom keys belong: single (default, all messages share one space of keys) or header:NAME, the header of messages that names the tenant. The service gets that header."`
	Compare    string   `name:"compare" placeholder:"WHAT" default:"body" group:"Whose keys" help:"What two messages with one key must have in common: body (default, with the topic or address) or nothing. A message that differs goes to the dead letters."`
	SecretFile string   `name:"secret-file" placeholder:"FILE" group:"Whose keys" help:"Secrets that key the hashes of messages, one id:hex a line. The first line hashes, all compare; the word unkeyed as the first line hashes without a secret (default: unkeyed). Never use an id again with another secret; see docs/how-to/rotate-secrets.md. Read at the start only."`

	Order       string `name:"order" placeholder:"RULE" group:"Messages" help:"Which messages are sent one after the other: none, header:NAME, key (kafka, pulsar), partition (pulsar), subject (nats), routing-key (amqp) or group (sqs). Default: the record's key with Kafka, the message group of a FIFO queue, the key in a key-shared and the partition in a failover or exclusive subscription of Pulsar, and none with the others."`
	DeadLetters string `name:"dead-letters" placeholder:"NAME" group:"Messages" help:"The topic, subject or queue for messages that cannot be delivered (default: as the adapter names it, such as dead-letters.GROUP with Kafka and NATS)."`
	Quarantine  string `name:"quarantine" placeholder:"NAME" group:"Messages" help:"The topic, subject or queue for messages of which nobody knows whether they took effect (default: as the adapter names it, such as quarantine.GROUP)."`

	Mode             event.Mode      `name:"mode" placeholder:"MODE" default:"binary" group:"Requests" help:"The content mode of CloudEvents: binary (default; the attributes are headers) or structured (the body is one JSON object)."`
	EventSource      string          `name:"event-source" placeholder:"TEXT" group:"Requests" help:"The beginning of the attribute source of messages that are no CloudEvents; the topic or address follows (default: the kind of broker and a colon, such as kafka:)."`
	EventType        string          `name:"event-type" placeholder:"TEXT" default:"semel.message" group:"Requests" help:"The attribute type of messages that are no CloudEvents (default ${default}; with RabbitMQ the property type goes before)."`
	Header           []string        `name:"header" placeholder:"NAME: VALUE" sep:"none" group:"Requests" help:"A header that each request gets, such as \"Authorization: Bearer …\". Can be repeated. SEMEL_HEADER keeps a secret off the command line."`
	ForwardHeaders   []string        `name:"forward-headers" placeholder:"NAME,…" default:"traceparent,tracestate" group:"Requests" help:"Headers of a message that its request gets, too (default ${default})."`
	Timeout          config.Duration `name:"timeout" placeholder:"TIME" default:"60s" group:"Requests" help:"How long the service may take for a message (default ${default}). After that it is in doubt."`
	DoneStatuses     []int           `name:"done-statuses" placeholder:"STATUS,…" group:"Requests" help:"Statuses that say that the message is done, besides the ones in docs/deliver.md, such as 409 of a service that answers so when it knows the key."`
	FinalStatuses    []int           `name:"final-statuses" placeholder:"STATUS,…" group:"Requests" help:"Statuses that send the message to the dead letters at once, such as 402."`
	NoEffectStatuses []int           `name:"no-effect-statuses" placeholder:"STATUS,…" group:"Requests" help:"Statuses that say that nothing was done, such as 404 or 500."`

	OnDoubt          policy          `name:"on-doubt" placeholder:"POLICY" default:"retry" group:"Doubt" help:"When nobody knows whether a message took effect: retry (default; it is sent again) or park (it is not, until it is reconciled or resolved)."`
	MaxAttempts      int             `name:"max-attempts" placeholder:"N" default:"10" group:"Doubt" help:"How often a message is sent that ends in doubt, or that is refused, before it goes to the dead letters (default ${default}; 0: no limit). Answers that ask for a later request do not count."`
	ReconcileURL     string          `name:"reconcile-url" placeholder:"URL" group:"Doubt" help:"With on-doubt park, who is asked what became of a message: the hook of semel proxy."`
	ReconcileTimeout config.Duration `name:"reconcile-timeout" placeholder:"TIME" default:"10s" group:"Doubt" help:"The time limit of one such question (default ${default})."`
	ReconcileWait    config.Duration `name:"reconcile-wait" placeholder:"TIME" default:"1m" group:"Doubt" help:"How long a message in doubt waits here, and reconcile-url is asked again, before it goes to the quarantine (default ${default}). With 0 it goes at once; a message that another process has left in doubt goes after one question."`

	Concurrency    int             `name:"concurrency" placeholder:"N" default:"64" group:"Limits" help:"How many requests run at once (default ${default})."`
	InFlight       int             `name:"in-flight" placeholder:"N" default:"0" group:"Limits" help:"How many messages that may be sent are taken from the broker at once (default: 4 times concurrency)."`
	TenantRequests *int            `name:"tenant-requests" placeholder:"N" group:"Limits" help:"How many requests of each tenant, which --scope names, run at once (default: a quarter of concurrency, at least 1; 0: no limit). Further messages of the tenant wait, and other tenants go on."`
	MaxBody        config.Size     `name:"max-body" placeholder:"SIZE" default:"10MiB" group:"Limits" help:"The largest body (default ${default}); a larger message goes to the dead letters."`
	MaxBytes       config.Size     `name:"max-bytes" placeholder:"SIZE" default:"64MiB" group:"Limits" help:"While the messages that are here have so many bytes of bodies, no more are taken (default ${default})."`
	Lease          config.Duration `name:"lease" placeholder:"TIME" default:"30s" group:"Limits" help:"How long a claim holds when its holder dies (default ${default}). Renewed every third of it while a request runs."`
	Retention      config.Duration `name:"retention" placeholder:"TIME" default:"7d" group:"Limits" help:"How long outcomes are kept (default ${default}). As long as the broker keeps messages, or the start fails."`
	ShortRetention bool            `name:"short-retention" group:"Limits" help:"Accept a broker that keeps messages for longer than retention, such as a queue of RabbitMQ. Older messages go to the quarantine."`
	StoreTimeout   config.Duration `name:"store-timeout" placeholder:"TIME" default:"5s" group:"Limits" help:"How long one answer of the store may take (default ${default}). Then no message is taken until it answers."`
	Drain          config.Duration `name:"drain" placeholder:"TIME" default:"30s" group:"Limits" help:"How long a stop waits for requests in flight (default ${default})."`
	SweepEvery     config.Duration `name:"sweep-every" placeholder:"TIME" default:"1m" group:"Limits" help:"Pause between two removals of expired records (default ${default}; 0: never)."`
	ToIdle         config.Duration `name:"to-idle" placeholder:"TIME" default:"4s" group:"Limits" help:"How long an idle connection to the service is kept (default ${default}). Keep it below the service's own limit, which is 5s in Node and Uvicorn."`

	ToCA     string `name:"to-ca" placeholder:"FILE" group:"TLS" help:"The authorities that the service's certificate is checked with (default: the system's). All files of this group are read again when they change."`
	ToCert   string `name:"to-cert" placeholder:"FILE" group:"TLS" help:"This program's certificate for the service (mutual TLS)."`
	ToKey    string `name:"to-key" placeholder:"FILE" group:"TLS" help:"The private key of to-cert."`
	HookCA   string `name:"hook-ca" placeholder:"FILE" group:"TLS" help:"The authorities that the certificate of reconcile-url is checked with (default: the system's)."`
	HookCert string `name:"hook-cert" placeholder:"FILE" group:"TLS" help:"This program's certificate for reconcile-url."`
	HookKey  string `name:"hook-key" placeholder:"FILE" group:"TLS" help:"The private key of hook-cert."`
}

// policy is a store.Policy as a flag.
type policy struct{ store.Policy }

// UnmarshalText implements encoding.TextUnmarshaler.
func (p *policy) UnmarshalText(text []byte) error {
	if p.Policy.UnmarshalText(text) != nil {
		return fmt.Errorf("%q is no policy; choose retry or park", text)
	}
	return nil
}

// flagNames are the flags of a struct that SEMEL_ variables set: all but version.
func flagNames(t reflect.Type) (list []string) {
	for _, f := range reflect.VisibleFields(t) {
		if name := f.Tag.Get("name"); name != "" && name != "version" {
			list = append(list, name)
		}
	}
	return list
}
