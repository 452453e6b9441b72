package semelnats_test

import (
	"context"
	"encoding/json"
	"errors"
	"log"
	"os/signal"
	"syscall"
	"time"

	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"
	"github.com/semel-go/semel"
	"github.com/semel-go/semel/consume"
	"github.com/semel-go/semel/consume/semelnats"
	"github.com/semel-go/semel/store/memstore"
)

type order struct {
	ID string `json:"id"`
}

// A service that handles each order once, until it is told to stop. The
// streams ORDERS and LETTERS are the operator's; LETTERS takes
// "dead-letters.>" and "quarantine.>".
func Example() {
	ctx, stop := signal.NotifyContext(context.Background(), syscall.SIGTERM)
	defer stop()
	if err := run(ctx, "nats://127.0.0.1:1"); err != nil { // nobody is there
		return
	}
	log.Print("stopped")
	// Output:
}

func run(ctx context.Context, url string) error {
	conn, err := nats.Connect(url, nats.MaxReconnects(-1))
	if err != nil {
		return err
	}
	defer conn.Close()
	js, err := jetstream.New(conn)
	if err != nil {
		return err
	}
	pull, err := js.CreateOrUpdateConsumer(ctx, "ORDERS", jetstream.ConsumerConfig{
		Durable: "billing", AckPolicy: jetstream.AckExplicitPolicy, AckWait: 30 * time.Second, MaxDeliver: -1,
	})
	if err != nil {
		return err
	}
	source, err := semelnats.New(js, pull, nil)
	if err != nil {
		return err
	}
	guard, err := semel.New(memstore.New(nil), &semel.Options{Retention: consume.DefaultRetention, Backoff: consume.Backoff}) // in production a durable store
	if err != nil {
		return err
	}
	keys := consume.Keyed("billing", consume.FromHeader(consume.KeyHeader), consume.CloudEvent(), consume.JSONField("id"))
	billing, err := consume.New(guard, keys, bill, &consume.Options{Retention: consume.DefaultRetention})
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
