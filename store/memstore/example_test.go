package memstore_test

import (
	"context"
	"fmt"
	"testing"
	"time"

	"github.com/semel-go/semel/store"
	"github.com/semel-go/semel/store/memstore"
	"github.com/semel-go/semel/store/storetest"
)

// A store runs the conformance suite with one call in one test.
func Example_conformance() {
	_ = func(t *testing.T) { // TestConformance
		storetest.Run(t, storetest.Harness{
			Open: func(testing.TB) store.Store { return memstore.New(nil) },
		})
	}
}

// A Guard uses a store like this: the first claim wins, and a duplicate finds
// the outcome.
func Example() {
	ctx, st := context.Background(), memstore.New(nil)
	claim := func(owner byte) store.Found {
		found, err := st.Claim(ctx, store.Proposal{
			Key: store.Key{Operation: "charge", Tenant: "ann", Value: "order-7"}, State: store.Processing,
			Owner: store.Owner{owner}, Attempt: 1, Lease: time.Minute,
		})
		if err != nil {
			panic(err)
		}
		return found
	}
	first := claim(1)
	err := st.Settle(ctx, first.Record.Lease(), store.Settlement{
		State: store.Completed, Attempt: 1, Keep: 24 * time.Hour, Outcome: store.Outcome{Body: []byte("receipt 1")},
	})
	second := claim(2)
	d := store.Decide(&second.Record, &store.Call{}, second.Now)
	fmt.Println(first.Won, err, second.Won, d.Action, string(second.Record.Outcome.Body))
	// Output: true <nil> false replay receipt 1
}
