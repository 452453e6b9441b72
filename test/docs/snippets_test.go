package docs

import (
	"testing"

	"github.com/semel-go/semel/store"
	"github.com/semel-go/semel/store/memstore"
	"github.com/semel-go/semel/store/storetest"
)

// These declarations are quoted by a page and are nowhere else in the code.

// docs/new-store.md
func TestConformance(t *testing.T) {
	storetest.Run(t, storetest.Harness{
		Open: func(t testing.TB) store.Store { return memstore.New(nil) }, // empty, not shared, cleaned up by t
	})
}
