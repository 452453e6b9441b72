package stores

import (
	"fmt"
	"os"
	"path/filepath"
	"sync/atomic"
	"testing"
	"time"

	"github.com/semel-go/semel/internal/proctest"
	"github.com/semel-go/semel/store"
	"github.com/semel-go/semel/store/dynamostore"
	"github.com/semel-go/semel/store/dynamostore/dynamotest"
	"github.com/semel-go/semel/store/memstore"
	"github.com/semel-go/semel/store/pgstore"
	"github.com/semel-go/semel/store/pgstore/pgtest"
	"github.com/semel-go/semel/store/redisstore"
	"github.com/semel-go/semel/store/redisstore/redistest"
	"github.com/semel-go/semel/store/shardstore"
	"github.com/semel-go/semel/store/sqlitestore"
)

// Main runs the tests of a package, and then removes the servers that they
// share. Call it in TestMain: os.Exit(stores.Main(m)).
func Main(m *testing.M) int {
	return pgtest.Main(proctest.TestFunc(func() int {
		return redistest.Main(proctest.TestFunc(func() int { return dynamotest.Main(m) }))
	}))
}

// opened makes the names of schemas and prefixes different.
var opened atomic.Int64

// closer closes a store, and fails the test if that fails.
func closer(t testing.TB, st interface{ Close() error }) func() {
	return func() {
		if err := st.Close(); err != nil {
			t.Error(err)
		}
	}
}

// SQLite opens a store in a new file. It does not sync its writes.
func SQLite(t testing.TB) (st *sqlitestore.Store, end func()) {
	t.Helper()
	st, err := sqlitestore.Open(t.Context(), filepath.Join(t.TempDir(), "semel.db"), &sqlitestore.Options{Relaxed: true})
	if err != nil {
		t.Fatal(err)
	}
	return st, closer(t, st)
}

// Redis opens a store with a key prefix of its own.
func Redis(t testing.TB) (st *redisstore.Store, end func()) {
	t.Helper()
	st, err := redisstore.Open(t.Context(), redistest.Database(t), &redisstore.Options{
		Prefix: fmt.Sprintf("t-%d-%d:", os.Getpid(), opened.Add(1)), AllowPark: true,
	})
	if err != nil {
		t.Fatal(err)
	}
	return st, closer(t, st)
}

// Dynamo opens a store in a table of its own, which sweeps all records. The clients
// of one process have one clock.
func Dynamo(t testing.TB) (st *dynamostore.Store, end func()) {
	t.Helper()
	st, err := dynamostore.New(dynamotest.Client(dynamotest.URL(t)), fmt.Sprintf("t-%d-%d", os.Getpid(), opened.Add(1)), &dynamostore.Options{
		IndexShards: 1, MaxSkew: time.Microsecond, SweepExpired: true,
	})
	if err != nil {
		t.Fatal(err)
	}
	if err := st.Migrate(t.Context()); err != nil {
		t.Fatal(err)
	}
	return st, func() {}
}

// Postgres opens a store in a schema of its own, with six connections.
func Postgres(t testing.TB, o pgstore.Options) (st *pgstore.Store, end func()) {
	t.Helper()
	o.Schema, o.Connections = fmt.Sprintf("t_%d_%d", os.Getpid(), opened.Add(1)), 6
	st, err := pgstore.Open(t.Context(), pgtest.URL(t), &o)
	if err != nil {
		t.Fatal(err)
	}
	return st, closer(t, st)
}

// ThreeMemories are three empty memory stores, the shards of a [Sharded] store.
func ThreeMemories() []store.Store {
	return []store.Store{memstore.New(nil), memstore.New(nil), memstore.New(nil)}
}

// Sharded joins stores to one, each behind wrap, which may add faults; nil adds
// nothing.
func Sharded(t testing.TB, shards []store.Store, wrap func(store.Store) store.Store) store.Store {
	t.Helper()
	var named []shardstore.Shard
	for i, st := range shards {
		if wrap != nil {
			st = wrap(st)
		}
		named = append(named, shardstore.Shard{Name: fmt.Sprint(i), Store: st})
	}
	st, err := shardstore.New(named)
	if err != nil {
		t.Fatal(err)
	}
	return st
}
