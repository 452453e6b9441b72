package redisstore

import (
	"testing"

	"github.com/semel-go/semel/store"
	"github.com/semel-go/semel/store/storetest"
)

func BenchmarkStore(b *testing.B) {
	storetest.Bench(b, storetest.Harness{Open: func(t testing.TB) store.Store { return openNew(t, nil) }})
}
