package demo

import (
	"context"
	"errors"
	"maps"
	"path/filepath"
	"testing"

	"github.com/semel-go/semel"
	"github.com/semel-go/semel/cmd/semel/internal/demo/ledger"
	"github.com/semel-go/semel/store/sqlitestore"
)

func TestOnlyCompletedRecordsAreDone(t *testing.T) {
	path := filepath.Join(t.TempDir(), "semel.db")
	st, err := sqlitestore.Open(t.Context(), path, nil)
	if err != nil {
		t.Fatal(err)
	}
	defer st.Close()
	g, err := semel.New(st, &semel.Options{OnDoubt: semel.Park})
	if err != nil {
		t.Fatal(err)
	}
	const op semel.Operation = "http"
	for _, c := range []struct {
		tenant, key string
		err         error
	}{
		{"ada", "paid", nil}, {"bob", "paid", nil}, {"ada", "parked", errors.New("no answer")},
		{"ada", "released", semel.NoEffect(errors.New("not sent"))}, {"ada", "failed", semel.Final(errors.New("no money"))},
	} {
		err := semel.Once(t.Context(), g, semel.NewCall(op.For(c.tenant), c.key, semel.NoPayload()), func(context.Context, *semel.Execution) error { return c.err })
		if (err == nil) != (c.err == nil) {
			t.Fatalf("%s: %v", c.key, err)
		}
	}
	got, err := completed(t.Context(), path)
	want := map[ledger.ID]bool{{Tenant: "ada", Key: "paid"}: true, {Tenant: "bob", Key: "paid"}: true}
	if err != nil || !maps.Equal(got, want) {
		t.Errorf("got %v, %v", got, err)
	}
}

func TestAStoreThatIsNotThereIsNotEmpty(t *testing.T) {
	if got, err := completed(t.Context(), filepath.Join(t.TempDir(), "absent.db")); err == nil {
		t.Errorf("got %v", got)
	}
}
