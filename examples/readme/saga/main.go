package main

import (
	"context"
	"errors"
	"fmt"
	"log"

	"github.com/semel-go/semel"
	"github.com/semel-go/semel/saga"
	"github.com/semel-go/semel/store/sqlitestore"
)

type Order struct {
	ID, Customer, Item string
	Cents              int
}

// place holds the stock, charges the customer and ships the order.
var place = saga.Definition[Order, string]{
	Name:  "order",
	Steps: []string{"hold", "charge", "ship"},
	Run: func(ctx context.Context, r *saga.Run, o Order) (string, error) {
		_, err := saga.Step(ctx, r, "hold", func(ctx context.Context, at saga.At) (int, error) {
			fmt.Println("hold", o.Item, "with the key", at.Key())
			return 1, nil
		}, func(ctx context.Context, at saga.At, pieces int) error {
			fmt.Println("release", pieces, o.Item, "held with the key", at.StepKey())
			return nil
		})
		if err != nil {
			return "", err
		}
		payment, err := saga.Step(ctx, r, "charge", func(ctx context.Context, at saga.At) (string, error) {
			fmt.Println("charge", o.Cents, "cents with the key", at.Key())
			return "payment of " + o.Customer, nil
		}, func(ctx context.Context, at saga.At, payment string) error {
			fmt.Println("refund the", payment, "with the key", at.Key())
			return nil
		})
		if err != nil {
			return "", err
		}
		return saga.Step(ctx, r, "ship", func(ctx context.Context, at saga.At) (string, error) {
			if o.Item == "ghost" {
				return "", semel.Final(errors.New("there are no ghosts")) // for good: the saga turns back
			}
			return o.Item + " is on its way, " + payment, nil
		}, nil) // nothing after it can fail, and the saga has no Deadline
	},
}

func main() {
	ctx := context.Background()
	store, err := sqlitestore.Open(ctx, "orders.db", nil)
	if err != nil {
		log.Fatal(err)
	}
	defer store.Close()
	guard, err := semel.New(store, nil)
	if err != nil {
		log.Fatal(err)
	}
	orders, err := saga.New(guard, place)
	if err != nil {
		log.Fatal(err)
	}
	for _, o := range []Order{{"o1", "ann", "book", 1200}, {"o2", "bob", "ghost", 100}} {
		receipt, err := orders.Do(ctx, o.Customer, o.ID, o)
		fmt.Println(receipt, err)
	}
}
