// Command kafka-redis takes notifications from Kafka and sends each of them through
// a mail provider, with the records in Redis (Leased). Each notification has one
// recorded outcome. If a crash leaves a notification in doubt, it is sent again with
// the same key, which the provider recognizes. See its README.
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

const topic, group = "notifications", "mailer"

func main() {
	var c config
	flag.StringVar(&c.kafka, "kafka", "127.0.0.1:9092", "a broker of Kafka")
	flag.StringVar(&c.redis, "redis", "redis://127.0.0.1:6379/0", "Redis")
	flag.StringVar(&c.provider, "provider", "http://127.0.0.1:8025/mails", "the URL of the mail provider")
	flag.Parse()
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	err := c.run(ctx, flag.Arg(0))
	stop()
	if err != nil {
		log.Fatal(err)
	}
}

type config struct{ kafka, redis, provider string }

func (c *config) run(ctx context.Context, verb string) error {
	switch verb {
	case "topics":
		return kafkasend.CreateTopics(ctx, c.kafka, topic, group)
	case "serve":
		if err := serve(ctx, c); !errors.Is(err, context.Canceled) { // a canceled ctx ends serve
			return err
		}
		return nil
	case "send": // each notification twice, as a producer does that got no confirmation
		mails := []mail{{"note-1", "ann@example.org", "Your order is on its way"}, {"note-2", "bob@example.org", "Your payment has arrived"}}
		return send(ctx, c, append(mails, mails...)...)
	}
	return fmt.Errorf("%q: choose topics, serve or send", verb)
}

// send sends mails, the mails of one address in order. A mail's ID is its
// idempotency key.
func send(ctx context.Context, c *config, mails ...mail) error {
	var messages []kafkasend.Message
	for _, m := range mails {
		messages = append(messages, kafkasend.Message{Key: m.ID, Order: m.To, Body: m})
	}
	return kafkasend.Send(ctx, c.kafka, topic, messages...)
}
