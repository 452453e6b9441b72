package nearcache_test

import (
	"context"
	"fmt"

	"github.com/semel-go/semel"
	"github.com/semel-go/semel/store"
	"github.com/semel-go/semel/store/memstore"
	"github.com/semel-go/semel/store/nearcache"
)

func Example() {
	near, err := nearcache.New(memstore.New(nil), nil) // in earnest: a store that is a trip away
	if err != nil {
		panic(err)
	}
	guard, err := semel.New(near, nil)
	if err != nil {
		panic(err)
	}
	for range 3 {
		res, err := guard.Run(context.Background(), semel.Call{Operation: "charge", Tenant: "ann", Key: "order-7", Payload: semel.NoPayload()},
			func(context.Context, *semel.Execution) (store.Outcome, error) {
				return store.Outcome{Body: []byte("receipt 1")}, nil
			})
		fmt.Println(string(res.Body), res.Replayed, err)
	}
	fmt.Println(near.Stats().Hits, "answered from memory")
	// Output:
	// receipt 1 false <nil>
	// receipt 1 true <nil>
	// receipt 1 true <nil>
	// 2 answered from memory
}
