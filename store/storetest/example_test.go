package storetest_test

import (
	"context"
	"errors"
	"fmt"
	"testing"
	"time"

	"github.com/semel-go/semel/store"
	"github.com/semel-go/semel/store/memstore"
	"github.com/semel-go/semel/store/storetest"
)

// All that a store's own test needs.
func ExampleRun() {
	_ = func(t *testing.T) { // TestConformance, in a file of the store
		storetest.Run(t, storetest.Harness{
			Open: func(testing.TB) store.Store { return memstore.New(nil) },
		})
	}
}

// The first reply is lost: the claim was made, and sent again it is found.
func ExampleFault() {
	st := storetest.NewFault(memstore.New(nil), func(op storetest.Op, n int) storetest.Mode {
		if op == storetest.OpClaim && n == 1 {
			return storetest.LostReply
		}
		return storetest.None
	})
	claim := store.Proposal{
		Key: store.Key{Operation: "charge", Tenant: "ann", Value: "order-7"}, State: store.Processing,
		Owner: store.Owner{1}, Attempt: 1, Lease: time.Minute,
	}
	_, err := st.Claim(context.Background(), claim)
	fmt.Println(errors.Is(err, storetest.ErrInjected))
	found, err := st.Claim(context.Background(), claim)
	fmt.Println(found.Won, err)
	// Output:
	// true
	// true <nil>
}
