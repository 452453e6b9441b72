package memstore_test

import (
	"testing"

	"github.com/semel-go/semel/store"
	"github.com/semel-go/semel/store/memstore"
	"github.com/semel-go/semel/store/storetest"
)

func BenchmarkStore(b *testing.B) {
	storetest.Bench(b, storetest.Harness{Open: func(testing.TB) store.Store { return memstore.New(nil) }})
}
