// Saga-orders books orders: it holds the stock, charges the customer and books the order.
// If a step fails for good, the steps before it are undone in reverse. Kill the program
// at any moment and start it again: each order ends booked, or exactly undone.
package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"io"
	"log"
	"os"
	"os/signal"
	"time"

	"github.com/semel-go/semel"
	"github.com/semel-go/semel/saga"
	"github.com/semel-go/semel/store/sqlitestore"
)

type Order struct {
	ID, Customer, Item string
	Cents              int
}

// orders is the saga. The shop stands for the other systems.
func orders(shop *shop) saga.Definition[Order, string] {
	return saga.Definition[Order, string]{
		Name:  "order",
		Steps: []string{"hold", "charge", "book"},
		Run: func(ctx context.Context, r *saga.Run, o Order) (string, error) {
			_, err := saga.Step(ctx, r, "hold",
				func(ctx context.Context, at saga.At) (int, error) { return 1, shop.hold(ctx, at.Key(), o.Item) },
				func(ctx context.Context, at saga.At, n int) error {
					return shop.release(ctx, at.Key(), at.StepKey(), o.Item)
				})
			if err != nil {
				return "", err
			}
			payment, err := saga.Step(ctx, r, "charge",
				func(ctx context.Context, at saga.At) (string, error) {
					return shop.charge(ctx, at.Key(), o.Customer, o.Cents)
				},
				func(ctx context.Context, at saga.At, payment string) error {
					return shop.refund(ctx, at.Key(), at.StepKey(), o.Customer, o.Cents)
				})
			if err != nil {
				return "", err
			}
			return saga.Step(ctx, r, "book", func(ctx context.Context, at saga.At) (string, error) {
				return "order " + o.ID + " is booked, " + payment, shop.book(ctx, at.Key(), o)
			}, nil)
		},
	}
}

func main() {
	path := flag.String("db", "orders.db", "the file of the sagas' records")
	ledger := flag.String("shop", "shop.db", "the file that stands for stock, bank and shop")
	count := flag.Int("orders", 20, "how many orders to start")
	pause := flag.Duration("pause", 20*time.Millisecond, "how long an effect takes")
	flag.Parse()
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt)
	err := run(ctx, *path, *ledger, *count, *pause, os.Stdout)
	stop()
	if err != nil {
		log.Fatal(err)
	}
}

// run starts the orders, works until all have ended, and prints what became of them. A
// start of an order that was started before does nothing.
func run(ctx context.Context, path, ledger string, count int, pause time.Duration, out io.Writer) error {
	store, err := sqlitestore.Open(ctx, path, nil)
	if err != nil {
		return err
	}
	defer func() { _ = store.Close() }() // all changes are committed
	shop, err := openShop(ctx, ledger, pause)
	if err != nil {
		return err
	}
	defer shop.close()
	guard, err := semel.New(store, &semel.Options{Lease: 2 * time.Second})
	if err != nil {
		return err
	}
	place, err := saga.New(guard, orders(shop))
	if err != nil {
		return err
	}
	for i := range count {
		if err := start(ctx, place, order(i)); err != nil {
			return err
		}
	}
	working, stop := context.WithCancel(ctx)
	worked := make(chan error, 1)
	go func() { worked <- place.Work(working, &saga.WorkOptions{Every: 100 * time.Millisecond}) }()
	for i := range count {
		o := order(i)
		receipt, err := place.Do(ctx, o.Customer, o.ID, o) // waits for the worker, or works itself
		var failure *semel.Failure
		switch {
		case err == nil:
			_, err = fmt.Fprintln(out, receipt)
		case errors.As(err, &failure):
			_, err = fmt.Fprintln(out, "order", o.ID, "is undone:", failure)
		}
		if err != nil {
			stop()
			return errors.Join(err, <-worked)
		}
	}
	stop()
	if err := <-worked; err != nil {
		return err
	}
	return shop.audit(ctx, count, out)
}

// start starts an order. A process that was killed while it started the same order holds
// it until its lease has expired.
func start(ctx context.Context, place *saga.Saga[Order, string], o Order) error {
	for {
		err := place.Start(ctx, o.Customer, o.ID, o)
		if !errors.Is(err, semel.ErrInProgress) {
			return err
		}
		select {
		case <-ctx.Done():
			return ctx.Err()
		case <-time.After(100 * time.Millisecond):
		}
	}
}

// order is the order with a number. Every fourth customer has no money; every fifth order
// is of an item that cannot be booked.
func order(i int) Order {
	o := Order{ID: fmt.Sprint("o", i), Customer: fmt.Sprint("customer", i), Item: "book", Cents: 1000}
	if i%4 == 3 {
		o.Customer = fmt.Sprint("poor", i)
	}
	if i%5 == 4 {
		o.Item = "ghost"
	}
	return o
}
