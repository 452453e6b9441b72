package main

import (
	"context"
	"database/sql"
	"fmt"
	"io"
	"log"
	"net"
	"net/http"
	"time"

	"github.com/semel-go/semel"
	"github.com/semel-go/semel/outbox"
	"github.com/semel-go/semel/outbox/webhook"
	"github.com/semel-go/semel/store/sqlitestore"
	"github.com/semel-go/semel/store/sqlitestore/sqliteoutbox"
)

var secret = []byte("a secret of 32 bytes for ann ...")

// receive stands for the server of a customer.
func receive(w http.ResponseWriter, r *http.Request) {
	body, err := io.ReadAll(r.Body)
	if err == nil {
		err = webhook.Verify(secret, r.Header, body, time.Now())
	}
	if err != nil {
		http.Error(w, err.Error(), http.StatusBadRequest)
		return
	}
	fmt.Printf("the customer gets %s\n", body)
}

// placeOrder writes an order and a message about it in one transaction. However often it
// is called, there is one order, and one message with one ID.
func placeOrder(ctx context.Context, shop *sqlitestore.Atomic, box *sqliteoutbox.Outbox, id string) error {
	call := semel.Call{Operation: "order", Tenant: "ann", Key: id, Payload: semel.NoPayload()}
	return sqlitestore.Once(ctx, shop, call, func(ctx context.Context, x *semel.Execution, tx *sql.Tx) error {
		if _, err := tx.ExecContext(ctx, "CREATE TABLE IF NOT EXISTS orders (id TEXT)"); err != nil {
			return err
		}
		if _, err := tx.ExecContext(ctx, "INSERT INTO orders (id) VALUES (?)", id); err != nil {
			return err
		}
		return box.Put(ctx, tx, outbox.Message{
			Topic: "webhook", OrderKey: "ann", ID: x.DownstreamKey("placed"), Body: fmt.Appendf(nil, `{"placed": %q}`, id),
		})
	})
}

func run(ctx context.Context) error {
	store, err := sqlitestore.Open(ctx, "shop.db", nil)
	if err != nil {
		return err
	}
	defer store.Close()
	shop, err := sqlitestore.NewAtomic(store, nil)
	if err != nil {
		return err
	}
	box, err := sqliteoutbox.New(store)
	if err != nil {
		return err
	}
	defer box.Close()
	for range 3 { // a client that retries
		if err := placeOrder(ctx, shop, box, "order-17"); err != nil {
			return err
		}
	}
	if err := placeOrder(ctx, shop, box, "order-18"); err != nil {
		return err
	}

	customer, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		return err
	}
	defer customer.Close()
	go http.Serve(customer, http.HandlerFunc(receive))
	sink, err := webhook.New(func(_ context.Context, m *outbox.Message) (webhook.Endpoint, error) {
		return webhook.Endpoint{URL: "http://" + customer.Addr().String(), Secret: secret}, nil // of the customer m.OrderKey
	}, nil)
	if err != nil {
		return err
	}
	publisher, err := outbox.New(box, sink, &outbox.Options{Observe: outbox.LogEvents(nil)})
	if err != nil {
		return err
	}
	ctx, stop := context.WithTimeout(ctx, 2*time.Second) // a service runs it until it stops
	defer stop()
	return publisher.Run(ctx)
}

func main() {
	if err := run(context.Background()); err != nil {
		log.Fatal(err)
	}
}
