package sqliteoutbox_test

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/semel-go/semel"
	"github.com/semel-go/semel/outbox"
	"github.com/semel-go/semel/outbox/outboxtest"
	"github.com/semel-go/semel/store/sqlitestore"
	"github.com/semel-go/semel/store/sqlitestore/sqliteoutbox"
)

// open is an empty outbox, the application's database on its file, and the store.
func open(t testing.TB) (*sqliteoutbox.Outbox, *sql.DB, *sqlitestore.Store) {
	t.Helper()
	path := filepath.Join(t.TempDir(), "shop.db")
	st, err := sqlitestore.Open(context.Background(), path, nil)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = st.Close() })
	box, err := sqliteoutbox.New(st)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := box.Close(); err != nil {
			t.Error(err)
		}
	})
	db, err := sql.Open("sqlite", "file:"+path+"?_txlock=immediate&_pragma=busy_timeout(5000)")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = db.Close() })
	return box, db, st
}

// tx is a transaction of the application.
type tx struct {
	*sql.Tx
	box *sqliteoutbox.Outbox
}

func (x tx) Put(ctx context.Context, messages ...outbox.Message) error {
	return x.box.Put(ctx, x.Tx, messages...)
}

func TestConformance(t *testing.T) {
	outboxtest.Run(t, outboxtest.Harness{OneWriter: true, Open: func(t testing.TB) (outboxtest.Outbox, func(testing.TB) outboxtest.Tx) {
		box, db, _ := open(t)
		return box, func(t testing.TB) outboxtest.Tx {
			begun, err := db.BeginTx(context.Background(), nil)
			if err != nil {
				t.Fatal(err)
			}
			return tx{begun, box}
		}
	}})
}

// start runs a publisher until the test ends.
func start(t *testing.T, box outbox.Store, sink outbox.Sink) {
	t.Helper()
	p, err := outbox.New(box, sink, nil)
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(context.Background())
	done := make(chan error, 1)
	go func() { done <- p.Run(ctx) }()
	t.Cleanup(func() {
		cancel()
		if err := <-done; err != nil {
			t.Error(err)
		}
	})
}

func wait(t *testing.T, sink *outboxtest.Sink, n int) {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	defer cancel()
	if err := sink.Wait(ctx, n); err != nil {
		t.Fatalf("%d messages were sent, want %d", len(sink.Sent()), n)
	}
}

// A handler that fails writes no message; one that succeeds writes it once, and a
// duplicate of the call writes none.
func TestAtomic_PutInHandler_MessageCommitsWithEffect(t *testing.T) {
	box, db, st := open(t)
	shop, err := sqlitestore.NewAtomic(st, nil)
	if err != nil {
		t.Fatal(err)
	}
	sink := &outboxtest.Sink{}
	start(t, box, sink)
	if _, err := db.Exec("CREATE TABLE orders (id TEXT)"); err != nil {
		t.Fatal(err)
	}
	boom := errors.New("boom")
	book := func(fails bool) error {
		call := semel.Call{Operation: "order", Tenant: "ann", Key: "order-17", Payload: semel.NoPayload()}
		return sqlitestore.Once(t.Context(), shop, call, func(ctx context.Context, x *semel.Execution, tx *sql.Tx) error {
			if _, err := tx.ExecContext(ctx, "INSERT INTO orders VALUES ('order-17')"); err != nil {
				return err
			}
			if err := box.Put(ctx, tx, outbox.Message{Topic: "orders", OrderKey: "ann", ID: x.DownstreamKey("placed")}); err != nil || !fails {
				return err
			}
			return boom
		})
	}
	if err := book(true); !errors.Is(err, boom) {
		t.Fatal(err)
	}
	for range 3 {
		if err := book(false); err != nil {
			t.Fatal(err)
		}
	}
	if err := put(t, db, box, outbox.Message{Topic: "orders", ID: "last"}); err != nil {
		t.Fatal(err)
	}
	wait(t, sink, 2)
	var orders int
	if err := db.QueryRow("SELECT count(*) FROM orders").Scan(&orders); err != nil || orders != 1 {
		t.Errorf("%d orders, %v", orders, err)
	}
	sent := sink.Sent()
	if len(sent) != 2 || !slices.ContainsFunc(sent, func(m outbox.Message) bool { return m.OrderKey == "ann" && len(m.ID) == 36 }) {
		t.Errorf("sent %+v", sent)
	}
}

// put writes messages in a transaction of the application.
func put(t *testing.T, db *sql.DB, box *sqliteoutbox.Outbox, messages ...outbox.Message) error {
	t.Helper()
	tx, err := db.BeginTx(t.Context(), nil)
	if err != nil {
		return err
	}
	if err := box.Put(t.Context(), tx, messages...); err != nil {
		return errors.Join(err, tx.Rollback())
	}
	return tx.Commit()
}

// Messages are written while two publishers send them.
func TestPublishers_WritersAtTheSameTime_KeysKeepTheirOrder(t *testing.T) {
	box, db, _ := open(t)
	sink := &outboxtest.Sink{}
	start(t, box, sink)
	start(t, box, sink)
	const keys, each = 5, 20
	for n := range each {
		for k := range keys {
			if err := put(t, db, box, outbox.Message{Topic: "orders", OrderKey: fmt.Sprint("k", k), ID: fmt.Sprint(n)}); err != nil {
				t.Fatal(err)
			}
		}
	}
	wait(t, sink, keys*each)
	next := map[string]int{}
	for _, m := range sink.Sent() {
		if m.ID != fmt.Sprint(next[m.OrderKey]) {
			t.Fatalf("key %q: message %s, want %d", m.OrderKey, m.ID, next[m.OrderKey])
		}
		next[m.OrderKey]++
	}
}

// Stats does not read sent messages: it works although their table is not there.
func TestStats_NoSentTable_Counts(t *testing.T) {
	box, db, _ := open(t)
	if _, err := db.ExecContext(t.Context(), "DROP TABLE semel_outbox_sent"); err != nil {
		t.Fatal(err)
	}
	begun, err := db.BeginTx(t.Context(), nil)
	if err != nil {
		t.Fatal(err)
	}
	if err := errors.Join(box.Put(t.Context(), begun, outbox.Message{Topic: "orders", ID: "1"}), begun.Commit()); err != nil {
		t.Fatal(err)
	}
	if s, err := box.Stats(t.Context()); err != nil || s.Waiting != 1 || s.OldestAge <= 0 {
		t.Errorf("%+v, %v; want 1 waiting message", s, err)
	}
}

func TestPublisher_HeadersAreDamaged_OneMessageGoesToQuarantine(t *testing.T) {
	box, db, _ := open(t)
	put := func(key, id string) {
		tx, err := db.BeginTx(t.Context(), nil)
		if err == nil {
			err = errors.Join(box.Put(t.Context(), tx, outbox.Message{Topic: "t", OrderKey: key, ID: id}), tx.Commit())
		}
		if err != nil {
			t.Fatal(err)
		}
	}
	put("bad", "bad-0")
	put("bad", "bad-1")
	put("good", "good-0")
	if _, err := db.ExecContext(t.Context(), `UPDATE semel_outbox SET headers = '{' WHERE id = 'bad-0'`); err != nil {
		t.Fatal(err)
	}
	sink := &outboxtest.Sink{}
	p, err := outbox.New(box, sink, nil)
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	done := make(chan error, 1)
	go func() { done <- p.Run(ctx) }()
	for began := time.Now(); time.Since(began) < time.Minute; <-time.After(10 * time.Millisecond) {
		if s, err := box.Stats(t.Context()); err == nil && s.Quarantined == 1 && len(sink.Sent()) > 0 {
			break
		}
	}
	cancel()
	if err := <-done; err != nil {
		t.Fatal(err)
	}
	if sent := sink.Sent(); len(sent) != 1 || sent[0].ID != "good-0" {
		t.Errorf("sent %+v, want good-0 only", sent)
	}
	list, err := box.List(t.Context(), outbox.Quarantined, 0, 10)
	if err != nil || len(list) != 1 || list[0].ID != "bad-0" || !strings.Contains(list[0].LastError, "headers") {
		t.Errorf("the quarantine has %+v, %v; want bad-0 with an error about its headers", list, err)
	}
}
