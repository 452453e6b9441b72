package sqliteoutbox_test

import (
	"context"
	"database/sql"
	"errors"
	"testing"

	"github.com/semel-go/semel"
	"github.com/semel-go/semel/outbox"
	"github.com/semel-go/semel/store"
	"github.com/semel-go/semel/store/sqlitestore"
)

// The messages of a call in a transaction, and of a step in it, are found by the key of its
// record, also if the store has hashes of keys.
func TestAtomic_PutInHandlerAndStep_FoundByTheRecord(t *testing.T) {
	box, _, st := open(t)
	secret := make([]byte, 32)
	shop, err := sqlitestore.NewAtomic(st, &semel.Options{HashKeys: secret})
	if err != nil {
		t.Fatal(err)
	}
	call := semel.Call{Operation: "order", Tenant: "ann", Key: "order-17", Payload: semel.NoPayload()}
	err = sqlitestore.Once(t.Context(), shop, call, func(ctx context.Context, x *semel.Execution, tx *sql.Tx) error {
		return errors.Join(box.Put(ctx, tx, outbox.Message{Topic: "orders", ID: "a"}), sqlitestore.Once(ctx, shop, x.Step("tell"), func(ctx context.Context, _ *semel.Execution, tx *sql.Tx) error {
			return box.Put(ctx, tx, outbox.Message{Topic: "orders", ID: "b"})
		}))
	})
	if err != nil {
		t.Fatal(err)
	}
	f, err := st.Get(t.Context(), store.Key{Operation: "order", Tenant: "ann", Value: "order-17"}.Hashed(secret))
	if err != nil {
		t.Fatal(err)
	}
	entries, err := box.ListCall(t.Context(), outbox.CallHash(f.Record.Key), 10)
	if err != nil || len(entries) != 2 || entries[0].ID != "a" || entries[1].ID != "b" {
		t.Errorf("%+v, %v; want a and b", entries, err)
	}
}
