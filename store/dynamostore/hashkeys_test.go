package dynamostore

import (
	"context"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/semel-go/semel"
	"github.com/semel-go/semel/store"
)

// With HashKeys leased and Atomic calls have the hashes of tenant and key.
func TestHashKeys_LeasedAndAtomic_OnlyHashesInTheTable(t *testing.T) {
	t.Parallel()
	const canary = "canary-4711"
	s := openNew(t, nil)
	o := &semel.Options{StoreTimeout: time.Minute, HashKeys: []byte("0123456789abcdef0123456789abcdef")}
	a, err := NewAtomic(s, o)
	if err != nil {
		t.Fatal(err)
	}
	g, err := semel.New(s, o)
	if err != nil {
		t.Fatal(err)
	}
	call := func(key string) semel.Call {
		return semel.Call{Operation: "op", Tenant: canary, Key: key + canary, Payload: semel.NoPayload()}
	}
	for range 2 {
		if err := Once(t.Context(), a, call("atomic"), func(_ context.Context, _ *semel.Execution, tx *Tx) error { return tx.Add(s.count("k")) }); err != nil {
			t.Error(err)
		}
		err := semel.Once(t.Context(), g, call("leased"), func(ctx context.Context, x *semel.Execution) error {
			return Once(ctx, a, x.Step("s"), func(_ context.Context, _ *semel.Execution, tx *Tx) error { return tx.Add(s.count("k")) })
		})
		if err != nil {
			t.Error(err)
		}
	}
	n := 0
	for f, err := range s.List(t.Context(), store.Filter{Tenant: store.Key{Tenant: canary}.Hashed(o.HashKeys).Tenant}) {
		if n++; err != nil || strings.Contains(fmt.Sprintf("%+v", f.Record), canary) {
			t.Errorf("the table has %+v, %v", f.Record, err)
		}
	}
	if n != 2 || s.counted(t, "k") != 2 {
		t.Errorf("%d records and %d effects, want 2 and 2", n, s.counted(t, "k"))
	}
}
