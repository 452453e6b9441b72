package linear

import (
	"fmt"
	"testing"

	"github.com/semel-go/semel/store"
	"github.com/semel-go/semel/store/memstore"
	"github.com/semel-go/semel/store/nearcache"
	"github.com/semel-go/semel/store/shardstore"
)

// cached is a cache that all clients share, as those of one process do.
const cached = "nearcache before memstore"

func openCached(t testing.TB) (store.Store, func()) {
	st, err := nearcache.New(memstore.New(nil), nil)
	if err != nil {
		t.Fatal(err)
	}
	return st, func() {}
}

func openSharded(t testing.TB) (store.Store, func()) {
	var shards []shardstore.Shard
	for i := range 3 {
		shards = append(shards, shardstore.Shard{Name: fmt.Sprint(i), Store: memstore.New(nil)})
	}
	st, err := shardstore.New(shards)
	if err != nil {
		t.Fatal(err)
	}
	return st, func() {}
}
