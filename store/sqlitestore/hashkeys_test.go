package sqlitestore_test

import (
	"context"
	"database/sql"
	"errors"
	"path/filepath"
	"testing"

	"github.com/semel-go/semel"
	"github.com/semel-go/semel/store"
	"github.com/semel-go/semel/store/sqlitestore"
)

// With HashKeys no byte of a tenant or key is in the files, whichever way its record was
// made, and a store that is opened again finds each record.
func TestHashKeys_LeasedAndAtomic_NoByteInTheFiles(t *testing.T) {
	path := filepath.Join(t.TempDir(), "semel.db")
	secret := []byte("0123456789abcdef0123456789abcdef")
	charged := 0
	for i := range 2 {
		st, err := sqlitestore.Open(t.Context(), path, nil)
		if err != nil {
			t.Fatal(err)
		}
		o := &semel.Options{HashKeys: secret, OnDoubt: semel.Park}
		g, err := semel.New(st, o)
		if err != nil {
			t.Fatal(err)
		}
		a, err := sqlitestore.NewAtomic(st, &semel.Options{HashKeys: secret})
		if err != nil {
			t.Fatal(err)
		}
		call := func(key string) semel.Call {
			return semel.Call{Operation: "pay", Tenant: canaryTenant, Key: canaryTenant + key, Payload: semel.NoPayload()}
		}
		count := func(context.Context, *semel.Execution) error { charged++; return nil }
		errs := []error{
			semel.Once(t.Context(), g, call("leased"), func(ctx context.Context, x *semel.Execution) error {
				return semel.Once(ctx, g, x.Step("charge"), count)
			}),
			sqlitestore.Once(t.Context(), a, call("atomic"), func(ctx context.Context, x *semel.Execution, _ *sql.Tx) error { return count(ctx, x) }),
		}
		db, err := sql.Open("sqlite", "file:"+path+"?_txlock=immediate&_pragma=busy_timeout(10000)")
		if err != nil {
			t.Fatal(err)
		}
		tx, err := db.BeginTx(t.Context(), nil)
		if err != nil {
			t.Fatal(err)
		}
		errs = append(errs, semel.Once(t.Context(), a.In(tx), call("in"), count), tx.Commit(), db.Close())
		if i == 0 {
			_ = semel.Once(t.Context(), g, call("parked"), func(context.Context, *semel.Execution) error { return errors.New("boom") })
		}
		if _, err := g.Get(t.Context(), call("parked")); err != nil {
			errs = append(errs, err)
		}
		if err := errors.Join(errs...); err != nil {
			t.Error(err)
		}
		if hits := canaries(t, path); hits > 0 {
			t.Errorf("round %d: the canary is in the files %d times", i, hits)
		}
		if i > 0 {
			if clear, err := semel.New(st, nil); err != nil || semel.Once(t.Context(), clear, call("clear"), count) != nil {
				t.Error("a call without the hash failed")
			}
			if canaries(t, path) == 0 {
				t.Error("a call without the hash leaves no canary, so the test would find nothing")
			}
		}
		n := 0
		for f, err := range st.List(t.Context(), store.Filter{Tenant: store.Key{Tenant: canaryTenant}.Hashed(secret).Tenant}) {
			if n++; err != nil || f.Record.Key.Operation != "pay" {
				t.Errorf("%+v, %v", f.Record.Key, err)
			}
		}
		if n != 4 {
			t.Errorf("the hash of the tenant has %d records, want 4", n)
		}
		if err := st.Close(); err != nil {
			t.Error(err)
		}
	}
	if charged != 4 { // the step, two transactions, and the call without the hash
		t.Errorf("%d effects, want 4", charged)
	}
}
