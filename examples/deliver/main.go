// Command deliver sends payments to Kafka, for a service that is written in Python or
// TypeScript: semel deliver takes them from there. See its README.
package main

import (
	"context"
	"flag"
	"fmt"
	"log"
	"os"
	"os/signal"

	"github.com/semel-go/semel/examples/internal/kafkasend"
)

const topic, group = "payments", "ledger"

// payment is a message. Its ID is the idempotency key.
type payment struct {
	ID      string `json:"id"`
	Account string `json:"account"`
	Cents   int    `json:"cents"`
}

func main() {
	kafka := flag.String("kafka", "127.0.0.1:9092", "a broker of Kafka")
	flag.Parse()
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt)
	err := run(ctx, *kafka, flag.Arg(0))
	stop()
	if err != nil {
		log.Fatal(err)
	}
}

func run(ctx context.Context, kafka, verb string) error {
	switch verb {
	case "topics":
		return kafkasend.CreateTopics(ctx, kafka, topic, group)
	case "send": // each payment twice, as a producer does that got no confirmation
		payments := []payment{{"pay-1", "ann", 4200}, {"pay-2", "bob", 100}, {"pay-3", "ann", 7}}
		return send(ctx, kafka, append(payments, payments...)...)
	}
	return fmt.Errorf("%q: choose topics or send", verb)
}

// send sends payments, those of one account in order.
func send(ctx context.Context, kafka string, payments ...payment) error {
	var messages []kafkasend.Message
	for _, p := range payments {
		messages = append(messages, kafkasend.Message{Key: p.ID, Order: p.Account, Body: p})
	}
	return kafkasend.Send(ctx, kafka, topic, messages...)
}
