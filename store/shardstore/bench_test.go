package shardstore_test

import (
	"fmt"
	"testing"

	"github.com/semel-go/semel/store"
	"github.com/semel-go/semel/store/memstore"
	"github.com/semel-go/semel/store/shardstore"
	"github.com/semel-go/semel/store/storetest"
)

func BenchmarkStore(b *testing.B) {
	for _, n := range []int{1, 3, 16} {
		b.Run(fmt.Sprintf("shards=%d", n), func(b *testing.B) {
			storetest.Bench(b, storetest.Harness{Open: func(testing.TB) store.Store {
				var shards []shardstore.Shard
				for i := range n {
					shards = append(shards, shardstore.Shard{Name: fmt.Sprint("s", i), Store: memstore.New(nil)})
				}
				return newStore(b, shards...)
			}})
		})
	}
}

// BenchmarkOn is what finding the shard of a key costs.
func BenchmarkOn(b *testing.B) {
	for _, n := range []int{1, 3, 16, 64} {
		b.Run(fmt.Sprintf("shards=%d", n), func(b *testing.B) {
			var names []string
			for i := range n {
				names = append(names, fmt.Sprint("s", i))
			}
			s, k := named(b, names...), key("8e03978e-40d5-43dd-bc93-6894a57f9324")
			b.ReportAllocs()
			for b.Loop() {
				s.On(k)
			}
		})
	}
}
