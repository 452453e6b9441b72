package saga_test

import (
	"context"
	"fmt"
	"log"

	"github.com/semel-go/semel"
	"github.com/semel-go/semel/saga"
	"github.com/semel-go/semel/store/memstore"
)

// A worker runs what Start has kept.
func ExampleSaga_Work() {
	type Order struct{ ID, Customer string }
	shipped := make(chan string)
	ctx, stop := context.WithCancel(context.Background())
	defer stop()
	guard, err := semel.New(memstore.New(nil), nil)
	if err != nil {
		log.Fatal(err)
	}
	orders, err := saga.New(guard, saga.Definition[Order, string]{
		Name: "order", Steps: []string{"ship"},
		Run: func(ctx context.Context, r *saga.Run, o Order) (string, error) {
			return saga.Step(ctx, r, "ship", func(context.Context, saga.At) (string, error) {
				shipped <- o.ID
				return "on its way", nil
			}, nil)
		},
	})
	if err != nil {
		log.Fatal(err)
	}
	o := Order{"o1", "ann"}

	go orders.Work(ctx, nil) // until ctx ends; also takes up what a killed Do has left
	err = orders.Start(ctx, o.Customer, o.ID, o)

	fmt.Println(<-shipped, err)
	// Output: o1 <nil>
}
