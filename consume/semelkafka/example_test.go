package semelkafka_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"log"
	"os/signal"
	"syscall"

	"github.com/semel-go/semel"
	"github.com/semel-go/semel/consume"
	"github.com/semel-go/semel/consume/semelkafka"
	"github.com/semel-go/semel/store/memstore"
	"github.com/twmb/franz-go/pkg/kgo"
)

type order struct {
	ID string `json:"id"`
}

// A service that handles each order once, until it is told to stop. The topics
// "orders", "dead-letters.billing" and "quarantine.billing" are the operator's.
func Example() {
	ctx, stop := signal.NotifyContext(context.Background(), syscall.SIGTERM)
	defer stop()
	ctx, cancel := context.WithCancel(ctx)
	cancel() // in an example there is nobody to talk to
	if err := run(ctx, "127.0.0.1:1"); err != nil {
		return
	}
	log.Print("stopped")
	// Output:
}

func run(ctx context.Context, seed string) (err error) {
	source, err := semelkafka.New("billing", []string{"orders"}, &semelkafka.Options{Client: []kgo.Opt{kgo.SeedBrokers(seed)}})
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, source.Close()) }()                                                                 // after Serve: it leaves the group
	guard, err := semel.New(memstore.New(nil), &semel.Options{Retention: consume.DefaultRetention, Backoff: consume.Backoff}) // in production a durable store
	if err != nil {
		return err
	}
	keys := consume.Keyed("billing", consume.FromHeader(consume.KeyHeader), consume.CloudEvent(), consume.JSONField("id"))
	billing, err := consume.New(guard, keys, bill, nil)
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

// A producer that reads an outbox: the event's id is its key, however often it
// is sent.
func ExampleKeyed() {
	r := semelkafka.Keyed(&kgo.Record{Topic: "orders", Key: []byte("customer-7"), Value: []byte(`{"id":"o-1"}`)}, "event-81")
	for _, h := range r.Headers {
		fmt.Printf("%s: %s\n", h.Key, h.Value)
	}
	// Output: idempotency-key: event-81
}

// A client all of whose records have a key, though nobody set one. The same
// record produced again keeps it.
func ExampleStamper() {
	cl, err := kgo.NewClient(kgo.SeedBrokers("127.0.0.1:1"), kgo.WithHooks(semelkafka.Stamper{}))
	if err != nil {
		return
	}
	defer cl.Close()
	ctx, cancel := context.WithCancel(context.Background())
	cancel() // nobody is there
	r := &kgo.Record{Topic: "orders", Value: []byte(`{"id":"o-1"}`)}
	_ = cl.ProduceSync(ctx, r)
	fmt.Println(r.Headers[0].Key, len(r.Headers[0].Value) > 20)
	// Output: idempotency-key true
}

// A handler that sends on: each attempt of it stamps the same key, so that the
// next consumer drops the repeats.
func ExampleStamp() {
	guard, err := semel.New(memstore.New(nil), nil)
	if err != nil {
		return
	}
	call := semel.Call{Operation: "billing", Tenant: semel.Shared, Key: "event-81", Payload: semel.NoPayload()}
	_ = semel.Once(context.Background(), guard, call, func(_ context.Context, x *semel.Execution) error {
		r := semelkafka.Stamp(&kgo.Record{Topic: "invoices"}, x, "invoice")
		fmt.Printf("%s: %s\n", r.Headers[1].Key, r.Headers[1].Value)
		return nil
	})
	// Output: semel-caused-by: event-81
}
