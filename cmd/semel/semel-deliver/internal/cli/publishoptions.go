package cli

import (
	"github.com/semel-go/semel/cmd/semel/internal/config"
)

// publishOptions are the flags of publish.
type publishOptions struct {
	commonOptions

	Store       string   `name:"store" placeholder:"URL" default:"sqlite:semel.db" group:"Where" help:"The store of the outbox: sqlite:PATH (default ${default}) or postgres://USER@HOST/DATABASE."`
	To          string   `name:"to" placeholder:"URL" group:"Where" help:"The destination; see above. Required."`
	Topic       []string `name:"topic" placeholder:"NAME=WHERE" sep:"none" group:"Where" help:"Where the messages of one topic go: another name, or another destination; see above. Can be repeated."`
	AdminListen string   `name:"admin-listen" placeholder:"ADDR" group:"Where" help:"Address of /healthz, /readyz and /metrics, such as 127.0.0.1:9090 (default: none). Keep it private."`
	NoListen    bool     `name:"no-listen" group:"Where" help:"Do not wait for notifications of PostgreSQL, but look for messages every poll. For a pooler in transaction mode, such as PgBouncer."`
	Name        string   `name:"name" placeholder:"TEXT" group:"Where" help:"How this publisher is called in the table of lanes (default: the name of the machine)."`

	SecretFile string          `name:"secret-file" placeholder:"FILE" group:"Webhooks" help:"The secret that signs the requests, as whsec_ and base64 (default: they are not signed). Read at the start."`
	Header     []string        `name:"header" placeholder:"NAME: VALUE" sep:"none" group:"Webhooks" help:"A header that each request gets, such as \"Authorization: Bearer …\". Can be repeated. SEMEL_HEADER keeps a secret off the command line."`
	Timeout    config.Duration `name:"timeout" placeholder:"TIME" default:"10s" group:"Webhooks" help:"How long the receiver may take for a message (default ${default})."`
	ToIdle     config.Duration `name:"to-idle" placeholder:"TIME" default:"4s" group:"Webhooks" help:"How long an idle connection to the receiver is kept (default ${default})."`
	ToCA       string          `name:"to-ca" placeholder:"FILE" group:"Webhooks" help:"The authorities that the receiver's certificate is checked with (default: the system's). The three files are read again when they change."`
	ToCert     string          `name:"to-cert" placeholder:"FILE" group:"Webhooks" help:"This program's certificate for the receiver (mutual TLS)."`
	ToKey      string          `name:"to-key" placeholder:"FILE" group:"Webhooks" help:"The private key of to-cert."`

	MaxAttempts int             `name:"max-attempts" placeholder:"N" default:"0" group:"Limits" help:"After how many failed attempts a message goes to the quarantine, if others of its topic are sent meanwhile (default 0: only a message that the destination will never accept goes there)."`
	InFlight    int             `name:"in-flight" placeholder:"N" default:"512" group:"Limits" help:"How many messages of one topic are being sent at once; all topics together, eight times as many (default ${default})."`
	Batch       int             `name:"batch" placeholder:"N" default:"256" group:"Limits" help:"How many messages are read from the store at once (default ${default})."`
	Poll        config.Duration `name:"poll" placeholder:"TIME" default:"0" group:"Limits" help:"How often an idle publisher looks for messages (default: 1s with notifications of PostgreSQL, 20ms without)."`
	Lease       config.Duration `name:"lease" placeholder:"TIME" default:"15s" group:"Limits" help:"How long others wait for the lanes of a publisher that died (default ${default})."`
	Retention   config.Duration `name:"retention" placeholder:"TIME" default:"0" group:"Limits" help:"How long sent messages are kept, so that they can be sent again if the destination loses them (default 0: they are deleted at once)."`
	Drain       config.Duration `name:"drain" placeholder:"TIME" default:"10s" group:"Limits" help:"How long a stop waits for messages that are being sent (default ${default})."`
}
