package pgoutbox

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"testing"

	"github.com/jackc/pgx/v5"

	"github.com/semel-go/semel"
	"github.com/semel-go/semel/outbox"
	"github.com/semel-go/semel/store"
	"github.com/semel-go/semel/store/pgstore"
	"github.com/semel-go/semel/store/pgstore/internal/pgwire"
)

// The messages of a call in a transaction, and of a step in it, are found by the key of its
// record, also if the store has hashes of keys.
func TestAtomic_PutInHandlerAndStep_FoundByTheRecord(t *testing.T) {
	p, secret := newShop(t), make([]byte, 32)
	bank, err := pgstore.NewAtomic(p.st, &semel.Options{HashKeys: secret})
	if err != nil {
		t.Fatal(err)
	}
	call := semel.Call{Operation: "order", Tenant: "ann", Key: "order-17", Payload: semel.NoPayload()}
	err = pgstore.Once(t.Context(), bank, call, func(ctx context.Context, x *semel.Execution, tx pgx.Tx) error {
		return errors.Join(p.box.Put(ctx, tx, message("k", 0)), pgstore.Once(ctx, bank, x.Step("tell"), func(ctx context.Context, _ *semel.Execution, tx pgx.Tx) error {
			return p.box.Put(ctx, tx, message("k", 1))
		}))
	})
	if err != nil {
		t.Fatal(err)
	}
	f, err := p.st.Get(t.Context(), store.Key{Operation: "order", Tenant: "ann", Value: "order-17"}.Hashed(secret))
	if err != nil {
		t.Fatal(err)
	}
	entries, err := p.box.ListCall(t.Context(), outbox.CallHash(f.Record.Key), 10)
	if err != nil || len(entries) != 2 || entries[0].ID != "k-0" || entries[1].ID != "k-1" {
		t.Errorf("%+v, %v; want k-0 and k-1", entries, err)
	}
}

// A page of a record that is open asks every 2 s, whatever else the outbox keeps. Messages
// that were written outside of handlers are not in the indexes.
func TestListCall_ManyMessages_ReadsTheIndexesOnly(t *testing.T) {
	p := newShop(t)
	schema := pgwire.DatabaseOf(p.st).Schema
	const each = 20_000
	for _, sql := range []string{
		`INSERT INTO {s}.semel_outbox (written, order_hash, lane, topic, order_key, id, call_hash, headers, body) SELECT 1, n, n % 16, 't', '', n, substr(md5(n::text), 1, 16), '', '' FROM generate_series(1, $1::integer) n`,
		`INSERT INTO {s}.semel_outbox_held (position, written, order_hash, lane, topic, order_key, id, call_hash, headers, body) SELECT n, 1, n, 1, 't', '', n, substr(md5(n::text), 1, 16), '', '' FROM generate_series(1, $1::integer) n`,
		`INSERT INTO {s}.semel_outbox_sent (position, written, sent, topic, order_key, id, call_hash, headers, body) SELECT n, 1, 1, 't', '', n, substr(md5(n::text), 1, 16), '', '' FROM generate_series(1, $1::integer) n`,
		`INSERT INTO {s}.semel_outbox_sent (position, written, sent, topic, order_key, id, headers, body) SELECT n + 10000000, 1, 1, 't', '', n, '', '' FROM generate_series(1, $1::integer) n`,
	} {
		if _, err := p.app.Exec(t.Context(), strings.ReplaceAll(sql, "{s}", schema), each); err != nil {
			t.Fatal(err)
		}
	}
	for _, table := range []string{"semel_outbox", "semel_outbox_held", "semel_outbox_sent"} {
		if _, err := p.app.Exec(t.Context(), "ANALYZE "+schema+"."+table); err != nil {
			t.Fatal(err)
		}
	}
	first, last, err := outbox.CallRange("c4ca4238") // of the md5 of 1
	if err != nil {
		t.Fatal(err)
	}
	rows, err := p.app.Query(t.Context(), "EXPLAIN (ANALYZE, TIMING off) "+p.box.sql.listCall, first, last, 100)
	if err != nil {
		t.Fatal(err)
	}
	plan, err := pgx.CollectRows(rows, pgx.RowTo[string])
	text := strings.Join(plan, "\n")
	for _, index := range []string{"semel_outbox_call", "semel_outbox_held_call", "semel_outbox_sent_call"} {
		if err != nil || !strings.Contains(text, index+" ") {
			t.Errorf("the plan does not use %s: %v\n%s", index, err, text)
		}
	}
	if strings.Contains(text, "Seq Scan") || strings.Contains(text, "Rows Removed") {
		t.Errorf("the plan reads messages of other calls:\n%s", text)
	}
	t.Log(text)
	if entries, err := p.box.ListCall(t.Context(), "c4ca4238", 10); err != nil || len(entries) != 3 || fmt.Sprint(entries[0].State, entries[1].State, entries[2].State) != "held waiting sent" {
		t.Errorf("%+v, %v; want a held, a waiting and a sent message", entries, err)
	}
}
