package main

import (
	"context"
	"time"

	"github.com/semel-go/semel/cmd/semel/internal/demo"
	"github.com/semel-go/semel/cmd/semel/internal/demo/ledger"
)

// demoVerbs are the demo, and the payment service that it starts as a process
// of its own.
type demoVerbs struct {
	Demo       demoCmd       `cmd:"" help:"Watch duplicates, races and crashes go through semel proxy, and what happens without it."`
	DemoLedger demoLedgerCmd `cmd:"" name:"demo-ledger" hidden:"" help:"The payment service of the demo."`
}

type demoCmd struct {
	Orders  int    `name:"orders" placeholder:"N" default:"2000" help:"How many orders to pay (default ${default})."`
	Clients int    `name:"clients" placeholder:"N" default:"16" help:"How many clients pay at once (default ${default})."`
	Kills   int    `name:"kills" placeholder:"N" default:"8" help:"How often each kind of process is killed (default ${default})."`
	Seed    uint64 `name:"seed" placeholder:"N" default:"1" help:"Which plan the clients follow (default ${default})."`
	Keep    bool   `name:"keep" help:"Keep the journals, the store and the logs."`
	OnDoubt string `name:"on-doubt" hidden:"" default:"park" help:"The policy of the proxy. With retry the demo must fail."`
}

// Help implements kong.HelpProvider.
func (*demoCmd) Help() string {
	return `Everything runs on loopback, in a temporary directory. Clients in a hurry pay orders at a payment service that charges each time it is asked: some requests are sent twice, some by several clients at once, some by clients that hang up and come again, some with another amount under an old key. Meanwhile the service is killed (kill -9) while it works. First the clients talk to it directly; then, with the same orders, through semel proxy with --on-doubt park and a --reconcile-url, and the proxy is killed as well. In the end the charges are counted in the service's own journal.

The exit code is 1 if a promise was broken: a double charge, a lost or stuck order or two different answers for one key with Semel, or if the demo was blind: no double charge without.

Examples:

    semel demo
    semel demo --orders 500 --seed 7 --json
`
}

func (c *demoCmd) Run(ctx context.Context, e *env) error {
	return demo.Run(ctx, demo.Options{
		Orders: c.Orders, Clients: c.Clients, Kills: c.Kills, Seed: c.Seed, Keep: c.Keep, OnDoubt: c.OnDoubt, JSON: e.json,
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
