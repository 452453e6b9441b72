package linear

import (
	"fmt"
	"os"
	"sync/atomic"
	"testing"

	"github.com/semel-go/semel/store"
	"github.com/semel-go/semel/store/pgstore"
	"github.com/semel-go/semel/store/pgstore/pgtest"
)

var schemas atomic.Int64

// openPostgres opens a store in a schema of its own.
func openPostgres(t testing.TB) (store.Store, func()) {
	st, err := pgstore.Open(t.Context(), pgtest.URL(t), &pgstore.Options{
		Schema: fmt.Sprintf("linear_%d_%d", os.Getpid(), schemas.Add(1)), Connections: 6,
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
