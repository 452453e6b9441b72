package shardstore_test

import (
	"fmt"

	"github.com/semel-go/semel/store"
	"github.com/semel-go/semel/store/memstore"
	"github.com/semel-go/semel/store/shardstore"
)

func Example() {
	shards := []shardstore.Shard{
		{Name: "one", Store: memstore.New(nil)}, // in earnest: a server each
		{Name: "two", Store: memstore.New(nil)},
	}
	now, err := shardstore.New(shards)
	if err != nil {
		panic(err)
	}
	// Which keys would move to one more shard?
	then, err := shardstore.New(append(shards, shardstore.Shard{Name: "three", Store: memstore.New(nil)}))
	if err != nil {
		panic(err)
	}
	moved := 0
	for i := range 3000 {
		k := store.Key{Operation: "charge", Tenant: "ann", Value: fmt.Sprint(i)}
		if now.On(k) != then.On(k) {
			moved++
		}
	}
	fmt.Println("about a third moves:", moved > 900 && moved < 1100)
	// Output: about a third moves: true
}
