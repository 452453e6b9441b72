package main

import (
	"context"
	"encoding/json"
	"fmt"
	"log"
	"os/signal"
	"syscall"

	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"

	"github.com/semel-go/semel"
	"github.com/semel-go/semel/consume"
	"github.com/semel-go/semel/consume/semelnats"
	"github.com/semel-go/semel/store/sqlitestore"
)

// bill handles a message. If it returns an error, the message comes again later;
// after semel.Final it goes to the dead letters instead.
func bill(ctx context.Context, x *semel.Execution, m *consume.Message) error {
	var order struct{ Cents int }
	if err := json.Unmarshal(m.Body, &order); err != nil {
		return semel.Final(err)
	}
	fmt.Println("charging", order.Cents, "cents with the bank's key", x.DownstreamKey("bank"))
	return nil
}

func run(ctx context.Context) error {
	conn, err := nats.Connect(nats.DefaultURL, nats.MaxReconnects(-1)) // never gives up
	if err != nil {
		return err
	}
	defer conn.Close()
	js, err := jetstream.New(conn)
	if err != nil {
		return err
	}
	orders, err := js.Consumer(ctx, "ORDERS", "billing")
	if err != nil {
		return err
	}
	source, err := semelnats.New(js, orders, nil)
	if err != nil {
		return err
	}
	store, err := sqlitestore.Open(ctx, "semel.db", nil)
	if err != nil {
		return err
	}
	defer store.Close()
	guard, err := semel.New(store, &semel.Options{Retention: consume.DefaultRetention})
	if err != nil {
		return err
	}
	billing, err := consume.New(guard, consume.Keyed("billing", consume.FromHeader(consume.KeyHeader)), bill, nil)
	if err != nil {
		return err
	}
	return billing.Serve(ctx, source)
}

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), syscall.SIGINT, syscall.SIGTERM)
	err := run(ctx)
	stop()
	if err != nil {
		log.Fatal(err)
	}
}
