package main

import (
	"context"
	"time"

	"github.com/semel-go/semel/cmd/semel/internal/demo"
	"github.com/semel-go/semel/cmd/semel/internal/demo/consumer"
	"github.com/semel-go/semel/cmd/semel/internal/demo/ledger"
)

// demoVerbs are the demo, and what it starts as processes of their own.
type demoVerbs struct {
	Demo         demoCmd         `cmd:"" help:"Watch duplicates, races and crashes go through Semel, and what happens without it."`
	DemoLedger   demoLedgerCmd   `cmd:"" name:"demo-ledger" hidden:"" help:"The payment service of the demo."`
	DemoConsumer demoConsumerCmd `cmd:"" name:"demo-consumer" hidden:"" help:"A consumer of the event demo."`
}

type demoCmd struct {
	Events  bool   `name:"events" help:"Send the orders through a broker to consumers, instead of requests through semel proxy."`
	Orders  int    `name:"orders" placeholder:"N" default:"2000" help:"How many orders to pay (default ${default})."`
	Clients int    `name:"clients" placeholder:"N" default:"16" help:"How many clients pay, or producers send, at once (default ${default})."`
	Kills   int    `name:"kills" placeholder:"N" default:"8" help:"How often each kind of process is killed (default ${default})."`
	Seed    uint64 `name:"seed" placeholder:"N" default:"1" help:"Which plan the clients follow (default ${default})."`
	Keep    bool   `name:"keep" help:"Keep the journals, the stores and the logs."`
	Store   string `name:"store" placeholder:"URL" help:"Keep the proxy's records in PostgreSQL (postgres://USER@HOST/DATABASE) or Redis (redis://HOST:PORT/0), in a schema or under a prefix that is the demo's own and removed at its end, instead of SQLite."`
	OnDoubt string `name:"on-doubt" hidden:"" default:"park" help:"The policy of the proxy. With retry the demo must fail."`

	BrokerKeys bool `name:"broker-keys" hidden:"" help:"Take the broker's message ids for keys. With it the demo of events must fail."`
}

// Help implements kong.HelpProvider.
func (*demoCmd) Help() string {
	return `Everything runs on loopback, in a temporary directory, and nothing is left of it, also after Ctrl-C. With --store the records of the proxy are in PostgreSQL instead, in a schema semel_demo_… of their own, or in Redis, under a prefix of that name; only a demo that is killed itself leaves that behind.

Clients in a hurry pay orders at a payment service that charges each time it is asked: some requests are sent twice, some by several clients at once, some by clients that hang up and come again, some with another amount under an old key. Meanwhile the service is killed (kill -9) while it works. First the clients talk to it directly; then, with the same orders, through semel proxy with --on-doubt park and a --reconcile-url, and the proxy is killed as well. In the end the charges are counted in the service's own journal.

With --events the orders are messages: in a NATS JetStream server that runs inside this process, with its files on disk, so that there is nothing to install. Producers send each order up to three times, some copies at once, some later, and a few with another amount under an old key. Three consumer processes share them, and insert charges into an SQLite database; they are killed, one after the other, with messages in their hands. First they are consumers as they are often written: they keep a table of the messages that they have seen, look there, note it there, do the work, and ack. Copies that arrive together both find nothing, so orders are charged twice; an order that was noted when its consumer was killed is taken for done when it comes again, so it is lost. Then, with the same orders, they run each message through Semel: the record of its key commits in one transaction with the charge (Atomic), and a message with a changed amount goes to the dead letters. In the end the charges are counted in the database. The broker's own deduplication (Nats-Msg-Id) is not used: it ends after two minutes, and knows nothing of a consumer that dies.

The exit code is 1 if a promise was broken: a double charge, a lost or stuck order or two different answers for one key with Semel, or if the demo was blind: no double charge without (with --events: or no lost order).

Examples:

    semel demo
    semel demo --events
    semel demo --store postgres://app@127.0.0.1/shop
    semel demo --store redis://127.0.0.1:6379/0
    semel demo --orders 500 --seed 7 --json
`
}

func (c *demoCmd) Run(ctx context.Context, e *env) error {
	return demo.Run(ctx, demo.Options{
		Orders: c.Orders, Clients: c.Clients, Kills: c.Kills, Seed: c.Seed, Keep: c.Keep, OnDoubt: c.OnDoubt, JSON: e.json,
		Events: c.Events, Store: c.Store, BrokerKeys: c.BrokerKeys,
	}, e.stdout, e.stderr)
}

type demoLedgerCmd struct {
	Listen string        `name:"listen" required:"" help:"Its address."`
	File   string        `name:"file" required:"" help:"Its journal."`
	Work   time.Duration `name:"work" default:"10ms" help:"How long a payment takes."`
}

func (c *demoLedgerCmd) Run(ctx context.Context, e *env) error {
	return ledger.Serve(ctx, c.Listen, c.File, c.Work)
}

type demoConsumerCmd struct {
	Broker     string        `name:"broker" required:"" help:"The URL of its broker."`
	Book       string        `name:"book" required:"" help:"The database of charges."`
	Journal    string        `name:"journal" required:"" help:"Its journal."`
	Work       time.Duration `name:"work" default:"2ms" help:"How long a charge takes."`
	Semel      bool          `name:"semel" help:"Charge each order once."`
	BrokerKeys bool          `name:"broker-keys" help:"Take the broker's message ids for keys."`
}

func (c *demoConsumerCmd) Run(ctx context.Context, _ *env) error {
	return consumer.Serve(ctx, &consumer.Options{
		Broker: c.Broker, Book: c.Book, Journal: c.Journal, Work: c.Work, Semel: c.Semel, BrokerKeys: c.BrokerKeys,
	})
}
