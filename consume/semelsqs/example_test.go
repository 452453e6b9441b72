package semelsqs_test

import (
	"context"
	"log"
	"os/signal"
	"syscall"

	"github.com/aws/aws-sdk-go-v2/service/sqs"
	"github.com/semel-go/semel"
	"github.com/semel-go/semel/consume"
	"github.com/semel-go/semel/consume/semelsqs"
	"github.com/semel-go/semel/consume/semelsqs/sqstest"
	"github.com/semel-go/semel/store/memstore"
)

// A service that handles each order once, until it is told to stop. The queues
// orders.fifo, orders-dead-letters.fifo and orders-quarantine.fifo are the operator's.
func Example() {
	ctx, stop := signal.NotifyContext(context.Background(), syscall.SIGTERM)
	defer stop()
	client := sqstest.Client("http://127.0.0.1:1") // sqs.NewFromConfig in production; nobody is there
	if err := run(ctx, client); err != nil {
		return
	}
	log.Print("stopped")
	// Output:
}

func run(ctx context.Context, client *sqs.Client) error {
	source, err := semelsqs.New(client, "orders.fifo", nil)
	if err != nil {
		return err
	}
	guard, err := semel.New(memstore.New(nil), &semel.Options{Retention: consume.DefaultRetention, Backoff: consume.Backoff}) // in production a durable store
	if err != nil {
		return err
	}
	keys := consume.Keyed("billing", consume.FromHeader(consume.KeyHeader), consume.FromHeader(semelsqs.DeduplicationIDHeader), consume.BrokerID())
	billing, err := consume.New(guard, keys, bill, &consume.Options{Retention: consume.DefaultRetention})
	if err != nil {
		return err
	}
	return billing.Serve(ctx, source)
}

func bill(context.Context, *semel.Execution, *consume.Message) error { return nil }
