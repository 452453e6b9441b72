package memstore_test

import (
	"testing"
	"time"

	"github.com/semel-go/semel/store"
	"github.com/semel-go/semel/store/memstore"
)

// Each test here was written for a seeded bug of test/museum that nothing else
// caught.

// Rule 2: who has no token cannot find a claim to be its own.
func TestTheZeroOwnerWinsNothing(t *testing.T) {
	st := memstore.New(nil)
	p := store.Proposal{Key: store.Key{Operation: "op", Value: "k"}, State: store.Processing, Lease: time.Hour}
	for range 2 {
		if f, err := st.Claim(t.Context(), p); err != nil || f.Won {
			t.Errorf("claim without an owner: won %v, %v", f.Won, err)
		}
	}
	f, err := st.Get(t.Context(), p.Key)
	if err != nil {
		t.Fatal(err)
	}
	for range 2 {
		if f, err := st.Swap(t.Context(), f.Record.Seen(), p); err != nil || f.Won {
			t.Errorf("swap without an owner: won %v, %v", f.Won, err)
		}
	}
}
