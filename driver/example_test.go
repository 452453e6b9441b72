package driver_test

import (
	"context"
	"errors"
	"fmt"

	"github.com/semel-go/semel"
	"github.com/semel-go/semel/driver"
	"github.com/semel-go/semel/store"
	"github.com/semel-go/semel/store/memstore"
)

// A handler streams its answer. It stores a tombstone before the first byte, so
// that no duplicate runs the handler again.
func ExampleComplete() {
	guard, err := semel.New(memstore.New(nil), nil)
	if err != nil {
		panic(err)
	}
	export := func(ctx context.Context, x *semel.Execution) (store.Outcome, error) {
		done := store.Outcome{Code: 200, Gone: true} // the body is not kept
		if err := driver.Complete(ctx, x, done); err != nil {
			return store.Outcome{}, err
		}
		fmt.Println("streaming the export")
		return done, nil
	}
	call := semel.Call{Operation: "export", Tenant: "ann", Key: "2026-11", Payload: semel.NoPayload()}
	_, err = guard.Run(context.Background(), call, export)
	fmt.Println("first call:", err)
	_, err = guard.Run(context.Background(), call, export)
	fmt.Println("duplicate is done, result not kept:", errors.Is(err, semel.ErrNotKept))
	// Output:
	// streaming the export
	// first call: <nil>
	// duplicate is done, result not kept: true
}
