// Command demo shows what Semel does, on one machine and with nothing to
// install. Clients pay orders at a payment service that is killed again and
// again: first directly, then through semel proxy, which is killed too. The
// demo then counts the charges in the payment service's own journal. With
// --events the orders are messages: a NATS server delivers them to consumers
// that are killed, first without Semel, then with it. With --saga each order has
// steps in three systems, and workers that are killed.
package main

import (
	"context"
	"fmt"
	"io"
	"os"
	"os/signal"
	"strings"
	"syscall"
	"time"

	"github.com/alecthomas/kong"

	"github.com/semel-go/semel/cmd/semel/demo/internal/consumer"
	"github.com/semel-go/semel/cmd/semel/demo/internal/ledger"
	"github.com/semel-go/semel/cmd/semel/demo/internal/orders"
	"github.com/semel-go/semel/cmd/semel/internal/cli"
	"github.com/semel-go/semel/cmd/semel/internal/input"
	shared "github.com/semel-go/semel/cmd/semel/internal/program"
)

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	context.AfterFunc(ctx, stop) // so that a second signal ends the process at once
	os.Exit(run(ctx, os.Args[1:], os.Stdout, os.Stderr))
}

// The demo starts itself again in these roles, each in a process of its own.
const (
	roleProxy    = "proxy" // semel proxy, with its usual flags
	roleLedger   = "payment-service"
	roleConsumer = "consumer"
	roleWorker   = "order-worker"
)

// run carries out a command line and returns the exit code.
func run(ctx context.Context, args []string, stdout, stderr io.Writer) int {
	role := ""
	if len(args) > 0 {
		role = args[0]
	}
	switch role {
	case roleProxy:
		return cli.Run(ctx, args, os.Getenv, os.Stdin, stdout, stderr)
	case roleLedger:
		return parse(ctx, new(ledgerFlags), args[1:], stdout, stderr)
	case roleConsumer:
		return parse(ctx, new(consumerFlags), args[1:], stdout, stderr)
	case roleWorker:
		return parse(ctx, new(workerFlags), args[1:], stdout, stderr)
	}
	return parse(ctx, new(demoFlags), args, stdout, stderr)
}

// mode is a parsed command line: the demo itself or one of its roles.
type mode interface {
	run(ctx context.Context, stdout, stderr io.Writer) error
}

// parse reads the flags of c and runs it.
func parse(ctx context.Context, c mode, args []string, stdout, stderr io.Writer) int {
	exited := -1 // --help sets it
	parser, err := kong.New(c,
		kong.Name("demo"), kong.Description(description), kong.Writers(stdout, stderr),
		kong.Exit(func(code int) { exited = code }),
		kong.ConfigureHelp(kong.HelpOptions{WrapUpperBound: 100}),
	)
	if err != nil {
		return shared.Report(stderr, "demo", fmt.Errorf("command line: %w", err))
	}
	_, err = parser.Parse(args)
	switch {
	case exited >= 0:
		return exited
	case err != nil:
		_, _ = fmt.Fprintf(stderr, "demo: %s; see --help\n", strings.Join(input.Lines(err), "; "))
		return shared.ExitUsage
	}
	return shared.Report(stderr, "demo", c.run(ctx, stdout, stderr))
}

type demoFlags struct {
	Events  bool   `name:"events" help:"Send the orders as messages through a broker to consumers, instead of as requests through semel proxy."`
	Saga    bool   `name:"saga" help:"Make each order in three systems (bank, stock, shop) and undo it if one of them refuses."`
	Orders  int    `name:"orders" placeholder:"N" default:"0" help:"Number of orders (default 2000; with --saga 300)."`
	Clients int    `name:"clients" placeholder:"N" default:"16" help:"Number of clients that pay or place orders, or of producers that send, at the same time (default ${default})."`
	Kills   int    `name:"kills" placeholder:"N" default:"8" help:"How often to kill the payment service, and the proxy; with --events, how often to kill a consumer; with --saga, a worker (default ${default})."`
	Seed    uint64 `name:"seed" placeholder:"N" default:"1" help:"Seed of the clients' plan: equal seeds give equal orders and duplicates (default ${default})."`
	HTML    string `name:"html" placeholder:"FILE" help:"Also write the result as one HTML page with charts; the page needs no network."`
	JSON    bool   `name:"json" help:"Write the result as one JSON object instead of a table."`
	Keep    bool   `name:"keep" help:"Keep the temporary directory with the journals, the stores and the logs."`
	Store   string `name:"store" placeholder:"URL" help:"Store of the proxy's records, instead of SQLite: PostgreSQL (postgres://USER@HOST/DATABASE) or Redis (redis://HOST:PORT/0)."`

	// The flags below break the guarantee on purpose. The demo must then fail,
	// which shows that it can see double charges.
	OnDoubt    string `name:"on-doubt" hidden:"" default:"park" help:"Policy of the proxy. With retry the demo must fail."`
	BrokerKeys bool   `name:"broker-keys" hidden:"" help:"Use the broker's message ids as keys. The demo must then fail."`
	FreshKeys  bool   `name:"fresh-keys" hidden:"" help:"With --saga, give each attempt of a step a new key. The demo must then fail."`
}

const description = `The demo pays orders twice, while it kills the processes that do the work: first without Semel, then with Semel. At the end it counts the charges.

Everything runs on 127.0.0.1, in a temporary directory. The demo removes that directory at its end, also after Ctrl-C. With --store the proxy keeps its records in a schema (PostgreSQL) or under a key prefix (Redis) named semel_demo_…, which the demo removes too.

Requests (the default): clients pay orders at a payment service. Some requests are sent twice, some by several clients at once, some by clients that hang up and try again, and some reuse a key with another amount. Meanwhile the demo kills the payment service with kill -9. First the clients call the payment service directly; then, with the same orders, they call semel proxy with --on-doubt park and --reconcile-url, and the demo kills the proxy as well. The charges are counted in the payment service's journal.

Messages (--events): producers send each order up to three times to a NATS JetStream server that runs inside the demo. Three consumers insert charges into an SQLite database, and the demo kills them one after the other. First the consumers keep a table of the messages that they have seen: copies that arrive together are both charged, and an order whose consumer is killed between the table and the charge is lost. Then, with the same orders, the consumers use Semel: the record of the key commits in one transaction with the charge (Atomic), and a message with a changed amount becomes a dead letter. The broker's own deduplication (Nats-Msg-Id) is off, because it ends after two minutes and does not cover a consumer that dies.

Orders over three systems (--saga): an order pays at the bank, holds a piece in the stock and is booked by the shop. Some orders are refused by one of the three; then the steps before are undone. Three workers make the orders, and the demo kills them one after the other. First the workers keep only a table of the orders: after a kill half of the worker's orders are tried again from their start, and the other half are left, as a queue or a web server would do. Nothing is kept of the steps, so that each attempt sends new keys. Then, with the same orders, each order is a saga: another worker goes on where the record of the steps ends, with the same keys. At the end an audit compares the money in the bank, the pieces in the stock and the booked orders in the systems' own books.

The exit code is 0 if every guarantee held, 1 if one was broken or if the run without Semel showed no double charge (with --events: or no lost order; with --saga: if its money and stock add up as well, so that the run shows nothing), and 2 if a flag is wrong.

Examples:

    go run ./cmd/semel/demo
    go run ./cmd/semel/demo --events
    go run ./cmd/semel/demo --saga
    go run ./cmd/semel/demo --html report.html
    go run ./cmd/semel/demo --orders 500 --seed 7 --json
    go run ./cmd/semel/demo --store postgres://app@127.0.0.1/shop
    go run ./cmd/semel/demo --store redis://127.0.0.1:6379/0
`

func (c *demoFlags) run(ctx context.Context, stdout, stderr io.Writer) error {
	return Run(ctx, Options{
		Orders: c.Orders, Clients: c.Clients, Kills: c.Kills, Seed: c.Seed, HTML: c.HTML, JSON: c.JSON, Keep: c.Keep,
		Events: c.Events, Saga: c.Saga, Store: c.Store, OnDoubt: c.OnDoubt, BrokerKeys: c.BrokerKeys, FreshKeys: c.FreshKeys,
	}, stdout, stderr)
}

type ledgerFlags struct {
	Listen  string        `name:"listen" required:"" help:"Address to listen on."`
	Journal string        `name:"journal" required:"" help:"Path of the journal."`
	Work    time.Duration `name:"work" default:"10ms" help:"How long a payment takes."`
}

func (c *ledgerFlags) run(ctx context.Context, _, _ io.Writer) error {
	return ledger.Serve(ctx, c.Listen, c.Journal, c.Work)
}

type consumerFlags struct {
	Broker     string        `name:"broker" required:"" help:"URL of the broker."`
	Database   string        `name:"database" required:"" help:"Path of the database of charges."`
	Journal    string        `name:"journal" required:"" help:"Path of the journal."`
	Work       time.Duration `name:"work" default:"2ms" help:"How long a charge takes."`
	Semel      bool          `name:"semel" help:"Use Semel, so that each order is charged once."`
	BrokerKeys bool          `name:"broker-keys" help:"Use the broker's message ids as keys."`
}

func (c *consumerFlags) run(ctx context.Context, _, _ io.Writer) error {
	return consumer.Serve(ctx, &consumer.Options{
		Broker: c.Broker, Book: c.Database, Journal: c.Journal, Work: c.Work, Semel: c.Semel, BrokerKeys: c.BrokerKeys,
	})
}

type workerFlags struct {
	Shop      string        `name:"shop" required:"" help:"Path of the file of bank, stock and shop."`
	File      string        `name:"file" required:"" help:"Path of the file of orders, or of Semel's records."`
	Journal   string        `name:"journal" required:"" help:"Path of the journal."`
	Work      time.Duration `name:"work" default:"10ms" help:"How long a request to a system takes."`
	Lease     time.Duration `name:"lease" default:"2s" help:"Lease of a saga."`
	Semel     bool          `name:"semel" help:"Make each order a saga."`
	FreshKeys bool          `name:"fresh-keys" help:"Give each attempt of a step a new key."`
}

func (c *workerFlags) run(ctx context.Context, _, _ io.Writer) error {
	return orders.Serve(ctx, &orders.Options{
		Shop: c.Shop, File: c.File, Journal: c.Journal, Work: c.Work, Lease: c.Lease, Semel: c.Semel, FreshKeys: c.FreshKeys,
	})
}
