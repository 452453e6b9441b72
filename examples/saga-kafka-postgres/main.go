// Command saga-kafka-postgres handles orders with three services that tell each other
// events: orders, payments and stock. Each has its own database in PostgreSQL and a topic
// in Kafka. If the stock has no more of an item, compensating events refund the payment
// and cancel the order. See its README.
package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"log"
	"os"
	"os/signal"
	"strings"
	"syscall"
	"time"
)

func main() {
	var c config
	flag.StringVar(&c.kafka, "kafka", "127.0.0.1:9092", "a broker of Kafka")
	flag.StringVar(&c.postgres, "postgres", "postgres://postgres@127.0.0.1:5432", "PostgreSQL (the password by PGPASSWORD)")
	flag.DurationVar(&c.lease, "lease", 15*time.Second, "how long the messages of a publisher that died wait for another one")
	flag.DurationVar(&c.session, "session", 45*time.Second, "how long the messages of a service that died wait for another process")
	flag.Parse()
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	err := c.run(ctx, strings.Join(flag.Args(), " "))
	stop()
	if err != nil {
		log.Fatal(err)
	}
}

type config struct {
	kafka, postgres string
	lease, session  time.Duration
}

// run runs a command, such as "serve orders".
func (c *config) run(ctx context.Context, command string) error {
	verb, name, _ := strings.Cut(command, " ")
	s := services[name]
	switch {
	case command == "setup":
		return c.setup(ctx)
	case command == "place":
		return c.place(ctx, ordersToPlace...)
	case verb == "serve" && s != nil:
		if err := c.serve(ctx, s); !errors.Is(err, context.Canceled) { // a canceled ctx ends serve
			return err
		}
		return nil
	case verb == "publish" && s != nil:
		return c.publish(ctx, s)
	}
	return fmt.Errorf("%q: choose setup, place, serve NAME or publish NAME, where NAME is orders, payments or stock", command)
}

// ordersToPlace has two orders that are cancelled: of the two who want the only lamp one
// gets no lamp, and bob cannot pay for the piano.
var ordersToPlace = []event{
	{Order: "o1", Customer: "ann", Item: "book", Cents: 1000},
	{Order: "o2", Customer: "bob", Item: "lamp", Cents: 3000},
	{Order: "o3", Customer: "eve", Item: "lamp", Cents: 3000},
	{Order: "o4", Customer: "bob", Item: "piano", Cents: 900_000},
}
