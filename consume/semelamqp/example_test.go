package semelamqp_test

import (
	"context"
	"encoding/json"
	"errors"
	"log"
	"os/signal"
	"syscall"

	"github.com/semel-go/semel"
	"github.com/semel-go/semel/consume"
	"github.com/semel-go/semel/consume/semelamqp"
	"github.com/semel-go/semel/store/memstore"
)

type order struct {
	ID string `json:"id"`
}

// A service that handles each order once, until it is told to stop. It makes
// the quorum queue "orders", and the queues of its retries and dead letters.
func Example() {
	ctx, stop := signal.NotifyContext(context.Background(), syscall.SIGTERM)
	defer stop()
	if err := run(ctx, "amqp://guest:guest@127.0.0.1:1/"); err != nil { // nobody is there
		return
	}
	log.Print("stopped")
	// Output:
}

func run(ctx context.Context, url string) error {
	source, err := semelamqp.New(url, "orders", &semelamqp.Options{Declare: semelamqp.DeclareAll})
	if err != nil {
		return err
	}
	defer func() { _ = source.Close() }()                                                                                     // Serve has settled all
	guard, err := semel.New(memstore.New(nil), &semel.Options{Retention: consume.DefaultRetention, Backoff: consume.Backoff}) // in production a durable store
	if err != nil {
		return err
	}
	keys := consume.Keyed("billing", consume.FromHeader(consume.KeyHeader), consume.CloudEvent(), semelamqp.FromMessageID())
	// AllowShortRetention: the queue has no TTL, so a message may be older than Retention; it goes to the quarantine then.
	billing, err := consume.New(guard, keys, bill, &consume.Options{AllowShortRetention: true})
	if err != nil {
		return err
	}
	return billing.Serve(ctx, source)
}

func bill(_ context.Context, _ *semel.Execution, m *consume.Message) error {
	var o order
	if err := json.Unmarshal(m.Body, &o); err != nil {
		return semel.Final(err) // to the dead letters
	}
	if o.ID == "" {
		return semel.Final(errors.New("an order without an id"))
	}
	return nil
}
