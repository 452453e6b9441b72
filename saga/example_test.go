package saga_test

import (
	"context"
	"errors"
	"fmt"
	"log"
	"sync"
	"time"

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

	var workers sync.WaitGroup
	workers.Go(func() { // works until ctx ends, and also takes up what a killed Do has left
		if err := orders.Work(ctx, nil); err != nil {
			log.Print(err)
		}
	})
	err = orders.Start(ctx, o.Customer, o.ID, o)

	fmt.Println(<-shipped, err)
	stop()         // as a signal does
	workers.Wait() // before the process ends
	// Output: o1 <nil>
}

// The bank does not recognise a repeated key, so the step is Parked. The options of a step
// come after its functions.
func ExampleParked() {
	type Payout struct{ ID, Customer string }
	ctx := context.Background()
	guard, err := semel.New(memstore.New(nil), nil)
	if err != nil {
		log.Fatal(err)
	}
	payouts, err := saga.New(guard, saga.Definition[Payout, string]{
		Name:         "payout",
		Steps:        []string{"transfer"},
		Deadline:     24 * time.Hour, // after that the saga turns back
		MaxAttempts:  20,             // failed ones in a row; then it is stuck
		UndoAttempts: 5,              // the same after it has turned back
		Run: func(ctx context.Context, r *saga.Run, p Payout) (string, error) {
			transfer := func(ctx context.Context, at saga.At) (string, error) {
				return "", errors.New("the bank does not answer") // it may have happened
			}
			recall := func(ctx context.Context, at saga.At, transfer string) error { return nil }
			return saga.Step(ctx, r, "transfer", transfer, recall, saga.Parked())
		},
	})
	if err != nil {
		log.Fatal(err)
	}

	_, err = payouts.Do(ctx, "ann", "p1", Payout{"p1", "ann"})

	fmt.Println(errors.Is(err, semel.ErrParked), err)
	// Output: true semel: saga stuck (operation "payout##saga"): step "transfer" may have happened: the bank does not answer
}
