package pgstore

import (
	"context"
	"fmt"
	"os"
	"strconv"
	"sync/atomic"
	"testing"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"

	"github.com/semel-go/semel/internal/recordtest"
	"github.com/semel-go/semel/store/pgstore/internal/pgwire"
	"github.com/semel-go/semel/store/pgstore/pgtest"
)

// allPartitions is SEMEL_TEST_PARTITIONS: in how many partitions the tests have
// their records that do not say so themselves. The tests of the schema differ
// then.
var allPartitions, _ = strconv.Atoi(os.Getenv("SEMEL_TEST_PARTITIONS"))

func TestMain(m *testing.M) { os.Exit(pgtest.Main(m)) }

var schemas atomic.Int64

// newSchema is the name of a schema that no other test has. On a server that stays, t
// drops it.
func newSchema(t testing.TB, url string) string {
	t.Helper()
	name := fmt.Sprintf("t%d_%d \"'", os.Getpid(), schemas.Add(1))
	if os.Getenv("SEMEL_TEST_POSTGRES_URL") == "" {
		return name
	}
	t.Cleanup(func() {
		ctx := context.Background()
		conn, err := pgx.Connect(ctx, url)
		if err != nil {
			t.Errorf("drop the test's schema: %v", err)
			return
		}
		defer conn.Close(ctx)
		if _, err := conn.Exec(ctx, "DROP SCHEMA IF EXISTS "+pgx.Identifier{name}.Sanitize()+" CASCADE"); err != nil {
			t.Errorf("drop the test's schema: %v", err)
		}
	})
	return name
}

// openAt opens a store that t closes.
func openAt(t testing.TB, url string, o *Options) *Store {
	t.Helper()
	s, err := Open(context.Background(), url, o)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := s.Close(); err != nil {
			t.Errorf("Close: %v", err)
		}
	})
	return s
}

// openNew opens a store in a new schema of the shared server.
func openNew(t testing.TB, o *Options) *Store {
	t.Helper()
	url := pgtest.URL(t)
	var opt Options
	if o != nil {
		opt = *o
	}
	opt.Schema = newSchema(t, url)
	if opt.Partitions == 0 {
		opt.Partitions = allPartitions
	}
	return openAt(t, url, &opt)
}

// application is the application's own pool for the server of a store.
func application(t testing.TB, s *Store) *pgxpool.Pool {
	t.Helper()
	pool, err := pgxpool.NewWithConfig(context.Background(), sized(s.ownPool.Config(), 8))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(pool.Close)
	return pool
}

func mustExec(t testing.TB, db pgwire.Execer, sql string, args ...any) {
	t.Helper()
	if _, err := db.Exec(context.Background(), sql, args...); err != nil {
		t.Fatalf("%s: %v", sql, err)
	}
}

// ask is the one value that a query returns.
func ask[T any](t testing.TB, db pgwire.Querier, sql string, args ...any) (v T) {
	t.Helper()
	if err := db.QueryRow(context.Background(), sql, args...).Scan(&v); err != nil {
		t.Fatalf("%s: %v", sql, err)
	}
	return v
}

// The records of the tests.
var (
	testKey, newOwner, proposal, completion = recordtest.Key, recordtest.NewOwner, recordtest.Proposal, recordtest.Completion
	claim, complete, get                    = recordtest.Claim, recordtest.Complete, recordtest.Get
)

func itoa(n int) string { return strconv.Itoa(n) }
