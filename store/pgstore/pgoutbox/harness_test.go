package pgoutbox

import (
	"context"
	"database/sql"
	"fmt"
	"os"
	"sync/atomic"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"
	"github.com/jackc/pgx/v5/stdlib"

	"github.com/semel-go/semel/outbox"
	"github.com/semel-go/semel/outbox/outboxtest"
	"github.com/semel-go/semel/store/pgstore"
	"github.com/semel-go/semel/store/pgstore/internal/pgwire"
	"github.com/semel-go/semel/store/pgstore/pgtest"
)

func TestMain(m *testing.M) { os.Exit(pgtest.Main(m)) }

var schemas atomic.Int64

// shop is a store in a schema of its own, and the application's pool.
type shop struct {
	box *Outbox
	st  *pgstore.Store
	app *pgxpool.Pool
	db  *sql.DB
}

func newShop(t testing.TB) *shop { return newShopAt(t, pgtest.URL(t)) }

func newShopAt(t testing.TB, url string) *shop {
	t.Helper()
	return openShop(t, url, fmt.Sprintf("o%d_%d \"'", os.Getpid(), schemas.Add(1)))
}

func openShop(t testing.TB, url, schema string) *shop {
	t.Helper()
	app, err := pgxpool.New(context.Background(), url)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(app.Close)
	return openShopOn(t, app, schema)
}

func openShopOn(t testing.TB, app *pgxpool.Pool, schema string) *shop {
	t.Helper()
	ctx := context.Background()
	st, err := pgstore.New(ctx, app, &pgstore.Options{Schema: schema})
	if err != nil {
		t.Fatal(err)
	}
	box, err := New(st, nil)
	if err != nil {
		t.Fatal(err)
	}
	p := &shop{box: box, st: st, app: app, db: stdlib.OpenDBFromPool(app)}
	t.Cleanup(func() {
		_ = p.db.Close()
		_ = box.Close()
		_ = st.Close()
		_, _ = app.Exec(ctx, "DROP SCHEMA "+pgwire.DatabaseOf(st).Schema+" CASCADE")
	})
	return p
}

// tx is a transaction of the application.
type tx struct {
	pgx.Tx
	box *Outbox
}

func (x tx) Put(ctx context.Context, messages ...outbox.Message) error {
	return x.box.Put(ctx, x.Tx, messages...)
}
func (x tx) Commit() error   { return x.Tx.Commit(context.Background()) }
func (x tx) Rollback() error { return x.Tx.Rollback(context.Background()) }

func (p *shop) begin(t testing.TB) outboxtest.Tx {
	t.Helper()
	begun, err := p.app.Begin(context.Background())
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = begun.Rollback(context.Background()) })
	return tx{begun, p.box}
}

// sqlTx is a transaction of database/sql.
type sqlTx struct {
	*sql.Tx
	box *Outbox
}

func (x sqlTx) Put(ctx context.Context, messages ...outbox.Message) error {
	return x.box.PutSQL(ctx, x.Tx, messages...)
}

func (p *shop) beginSQL(t testing.TB) outboxtest.Tx {
	t.Helper()
	begun, err := p.db.BeginTx(context.Background(), nil)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = begun.Rollback() })
	return sqlTx{begun, p.box}
}

// put writes messages in a transaction.
func (p *shop) put(t testing.TB, messages ...outbox.Message) {
	t.Helper()
	err := pgx.BeginFunc(context.Background(), p.app, func(tx pgx.Tx) error { return p.box.Put(context.Background(), tx, messages...) })
	if err != nil {
		t.Fatal(err)
	}
}

// start runs a publisher until the returned function is called, or the test ends.
func (p *shop) start(t testing.TB, sink outbox.Sink, o *outbox.Options) {
	t.Helper()
	publisher, err := outbox.New(p.box, sink, o)
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(context.Background())
	done := make(chan error, 1)
	go func() { done <- publisher.Run(ctx) }()
	t.Cleanup(func() {
		cancel()
		if err := <-done; err != nil {
			t.Error(err)
		}
	})
}

func wait(t testing.TB, sink *outboxtest.Sink, n int) {
	t.Helper()
	ctx, cancel := context.WithTimeout(context.Background(), time.Minute)
	defer cancel()
	if err := sink.Wait(ctx, n); err != nil {
		t.Fatalf("%d messages were sent, want %d", len(sink.Sent()), n)
	}
}

func message(key string, n int) outbox.Message {
	return outbox.Message{Topic: "orders", OrderKey: key, ID: fmt.Sprint(key, "-", n)}
}

func TestConformance(t *testing.T) {
	for name, begin := range map[string]func(*shop, testing.TB) outboxtest.Tx{"pgx": (*shop).begin, "database_sql": (*shop).beginSQL} {
		t.Run(name, func(t *testing.T) {
			outboxtest.Run(t, outboxtest.Harness{Open: func(t testing.TB) (outboxtest.Outbox, func(testing.TB) outboxtest.Tx) {
				p := newShop(t)
				return p.box, func(t testing.TB) outboxtest.Tx { return begin(p, t) }
			}})
		})
	}
}
