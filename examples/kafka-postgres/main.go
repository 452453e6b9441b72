// Command kafka-postgres takes payments from Kafka and makes each of them once in
// PostgreSQL, however often its message is produced or consumed: Semel's record and
// the two balances commit in one transaction. One transaction handles all messages of a
// batch. See its README.
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

	"github.com/semel-go/semel/examples/internal/kafkasend"
)

const topic, group = "payments", "bank"

func main() {
	var c config
	flag.StringVar(&c.kafka, "kafka", "127.0.0.1:9092", "a broker of Kafka")
	flag.StringVar(&c.postgres, "postgres", "postgres://postgres@127.0.0.1:5432/postgres", "PostgreSQL (the password by PGPASSWORD)")
	flag.Parse()
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	err := c.run(ctx, flag.Arg(0))
	stop()
	if err != nil {
		log.Fatal(err)
	}
}

type config struct{ kafka, postgres string }

func (c *config) run(ctx context.Context, verb string) error {
	switch verb {
	case "topics":
		return kafkasend.CreateTopics(ctx, c.kafka, topic, group)
	case "serve":
		if err := serve(ctx, c); !errors.Is(err, context.Canceled) { // a canceled ctx ends serve
			return err
		}
		return nil
	case "send": // each payment twice, as a producer does that got no confirmation
		payments := []payment{{"pay-1", "ann", "bob", 1000}, {"pay-2", "bob", "eve", 300}, {"pay-3", "eve", "ann", 50}}
		return send(ctx, c, append(payments, payments...)...)
	}
	return fmt.Errorf("%q: choose topics, serve or send", verb)
}

// send sends payments, the payments of one account in order. A payment's ID is its
// idempotency key.
func send(ctx context.Context, c *config, payments ...payment) error {
	var messages []kafkasend.Message
	for _, p := range payments {
		messages = append(messages, kafkasend.Message{Key: p.ID, Order: p.From, Body: p})
	}
	return kafkasend.Send(ctx, c.kafka, topic, messages...)
}
