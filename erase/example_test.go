package erase_test

import (
	"context"
	"fmt"
	"log"

	"github.com/semel-go/semel"
	"github.com/semel-go/semel/erase"
	"github.com/semel-go/semel/store/memstore"
)

// A customer has asked to be forgotten.
func ExampleRun() {
	ctx := context.Background()
	st := memstore.New(nil)
	guard, err := semel.New(st, nil)
	if err != nil {
		log.Fatal(err)
	}
	charge := func(customer string) {
		c := semel.Call{Operation: "charge", Tenant: customer, Key: "order-17", Payload: semel.NoPayload()}
		_, _ = semel.Do(ctx, guard, c, func(context.Context, *semel.Execution) (string, error) { return "receipt", nil })
	}
	charge("ann")
	charge("bob")

	report, err := erase.Run(ctx, st, erase.Scope{Tenant: "ann"}, nil)
	fmt.Println("erased", report.Erased, "left", report.Left(), err)
	// Output: erased 1 left 0 <nil>
}
