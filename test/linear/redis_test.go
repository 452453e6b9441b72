package linear

import (
	"fmt"
	"os"
	"testing"

	"github.com/semel-go/semel/store"
	"github.com/semel-go/semel/store/redisstore"
	"github.com/semel-go/semel/store/redisstore/redistest"
)

// openRedis opens a store with names, and mostly a database, of its own.
func openRedis(t testing.TB) (store.Store, func()) {
	st, err := redisstore.Open(t.Context(), redistest.Database(t), &redisstore.Options{
		Prefix: fmt.Sprintf("linear-%d-%d:", os.Getpid(), schemas.Add(1)), AllowPark: true,
	})
	if err != nil {
		t.Fatal(err)
	}
	return st, func() {
		if err := st.Close(); err != nil {
			t.Error(err)
		}
	}
}
