package pgkafka

import (
	"context"
	"fmt"
	"os"
	"slices"
	"sync/atomic"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"

	"github.com/semel-go/semel/store/pgstore"
	"github.com/semel-go/semel/store/pgstore/internal/pgwire"
	"github.com/semel-go/semel/store/pgstore/pgtest"
)

func TestMain(m *testing.M) { os.Exit(pgtest.Main(m)) }

var schemas atomic.Int64

// shop is a store in a schema of its own, and a table for effects.
type shop struct {
	st    *pgstore.Store
	app   *pgxpool.Pool
	table string
}

func newShop(t *testing.T, o *pgstore.Options) *shop {
	t.Helper()
	var opt pgstore.Options
	if o != nil {
		opt = *o
	}
	opt.Schema = fmt.Sprintf("k%d_%d \"'", os.Getpid(), schemas.Add(1))
	ctx := context.Background()
	app, err := pgxpool.New(ctx, pgtest.URL(t))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(app.Close)
	st, err := pgstore.New(ctx, app, &opt)
	if err != nil {
		t.Fatal(err)
	}
	p := &shop{st: st, app: app, table: pgwire.DatabaseOf(st).Schema + ".payment"}
	t.Cleanup(func() {
		if err := st.Close(); err != nil {
			t.Errorf("Close: %v", err)
		}
		p.exec(t, "DROP SCHEMA "+pgwire.DatabaseOf(st).Schema+" CASCADE")
	})
	p.exec(t, "CREATE TABLE "+p.table+" (key text)")
	return p
}

func (p *shop) exec(t *testing.T, sql string) {
	t.Helper()
	if _, err := p.app.Exec(context.Background(), sql); err != nil {
		t.Fatalf("%s: %v", sql, err)
	}
}

// ask is the number that a query returns.
func (p *shop) ask(t *testing.T, sql string) (n int) {
	t.Helper()
	if err := p.app.QueryRow(context.Background(), sql).Scan(&n); err != nil {
		t.Fatalf("%s: %v", sql, err)
	}
	return n
}

func (p *shop) begin(t *testing.T) pgx.Tx {
	t.Helper()
	tx, err := p.app.Begin(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = tx.Rollback(context.Background()) })
	return tx
}

// payments are the committed effects.
func (p *shop) payments(t *testing.T) []string {
	t.Helper()
	rows, err := p.app.Query(t.Context(), "SELECT key FROM "+p.table+" ORDER BY key")
	if err != nil {
		t.Fatal(err)
	}
	keys, err := pgx.CollectRows(rows, pgx.RowTo[string])
	if err != nil {
		t.Fatal(err)
	}
	return keys
}

func (p *shop) want(t *testing.T, keys ...string) {
	t.Helper()
	if got := p.payments(t); !slices.Equal(got, keys) && len(got)+len(keys) > 0 {
		t.Errorf("committed effects are %q, want %q", got, keys)
	}
}

// waitFor polls for an event.
func waitFor(t *testing.T, what string, happened func() bool) {
	t.Helper()
	for start := time.Now(); !happened(); <-time.After(5 * time.Millisecond) {
		if time.Since(start) > 2*time.Minute {
			t.Fatalf("it does not come to this: %s", what)
		}
	}
}

// through is a copy of db whose application's connections go to another URL.
func through(t *testing.T, db *pgwire.Database, url string) *pgwire.Database {
	t.Helper()
	pool, err := pgxpool.New(t.Context(), url)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(pool.Close)
	copied := *db
	copied.App = pool
	return &copied
}
