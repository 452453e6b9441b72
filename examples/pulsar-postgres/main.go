// Command pulsar-postgres takes orders from Pulsar and stores each of them once in
// PostgreSQL, however often its message comes: Semel's record, the order and the change
// of the stock commit in one transaction.
// See its README.
package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"log"
	"os"
	"os/signal"
	"syscall"
)

func main() {
	var c config
	flag.StringVar(&c.pulsar, "pulsar", "pulsar://127.0.0.1:6650", "Pulsar")
	flag.StringVar(&c.postgres, "postgres", "postgres://postgres@127.0.0.1:5432/postgres", "PostgreSQL (the password by PGPASSWORD)")
	flag.Parse()
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	err := c.run(ctx, flag.Arg(0))
	stop()
	if err != nil {
		log.Fatal(err)
	}
}

type config struct{ pulsar, postgres string }

func (c *config) run(ctx context.Context, verb string) error {
	switch verb {
	case "serve":
		if err := serve(ctx, c); !errors.Is(err, context.Canceled) { // a canceled ctx ends serve
			return err
		}
		return nil
	case "send": // each order twice, as a producer does that got no answer
		orders := []order{{"order-1", "book", 1}, {"order-2", "book", 2}, {"order-3", "pen", 10}}
		return send(ctx, c, append(orders, orders...)...)
	}
	return fmt.Errorf("%q: choose serve or send", verb)
}
