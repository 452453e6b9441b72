package semelpulsar_test

import (
	"context"
	"log"
	"os/signal"
	"syscall"
	"time"

	"github.com/apache/pulsar-client-go/pulsar"
	pulsarlog "github.com/apache/pulsar-client-go/pulsar/log"
	"github.com/semel-go/semel"
	"github.com/semel-go/semel/consume"
	"github.com/semel-go/semel/consume/semelpulsar"
	"github.com/semel-go/semel/store/memstore"
)

// A service that handles each order once, until it is told to stop. It shares the orders
// with other processes, and keeps the order of each key.
func Example() {
	ctx, stop := signal.NotifyContext(context.Background(), syscall.SIGTERM)
	defer stop()
	if err := run(ctx, "pulsar://127.0.0.1:1"); err != nil { // nobody is there
		return
	}
	log.Print("stopped")
	// Output:
}

func run(ctx context.Context, url string) error {
	client, err := pulsar.NewClient(pulsar.ClientOptions{URL: url, OperationTimeout: 100 * time.Millisecond, Logger: pulsarlog.DefaultNopLogger()}) // in production leave out the last two
	if err != nil {
		return err
	}
	defer client.Close()
	source, err := semelpulsar.New(client, "orders", "billing", &semelpulsar.Options{Type: pulsar.KeyShared})
	if err != nil {
		return err
	}
	guard, err := semel.New(memstore.New(nil), &semel.Options{Retention: consume.DefaultRetention, Backoff: consume.Backoff}) // in production a durable store
	if err != nil {
		return err
	}
	keys := consume.Keyed("billing", consume.FromHeader(consume.KeyHeader), consume.CloudEvent(), consume.BrokerID())
	billing, err := consume.New(guard, keys, bill, &consume.Options{Retention: consume.DefaultRetention, AllowShortRetention: true})
	if err != nil {
		return err
	}
	return billing.Serve(ctx, source)
}

func bill(context.Context, *semel.Execution, *consume.Message) error { return nil }
