package storm

import (
	"fmt"
	"os"
	"path/filepath"
	"sync/atomic"
	"testing"

	"github.com/semel-go/semel/store"
	"github.com/semel-go/semel/store/memstore"
	"github.com/semel-go/semel/store/nearcache"
	"github.com/semel-go/semel/store/pgstore"
	"github.com/semel-go/semel/store/pgstore/pgtest"
	"github.com/semel-go/semel/store/redisstore"
	"github.com/semel-go/semel/store/redisstore/redistest"
	"github.com/semel-go/semel/store/shardstore"
	"github.com/semel-go/semel/store/sqlitestore"
)

func TestMain(m *testing.M) {
	os.Exit(pgtest.Main(runner(func() int { return redistest.Main(m) })))
}

// runner is what each server's Main wraps: the tests, or another's Main.
type runner func() int

func (r runner) Run() int { return r() }

// opener opens an empty store.
type opener func(t testing.TB) (open way, end func())

// way is how one more process comes to a store: each that processes have in common
// is to be put behind something.
type way func(behind func(store.Store) store.Store) store.Store

// kinds are the stores that have storms: a new store is one line.
var kinds = []struct {
	name string
	open opener
}{
	{"memstore", openMemory},
	{"nearcache", openNear},
	{"nearcache with a front", openFront},
	{"shardstore", openShards},
	{"sqlitestore", openSQLite},
	{"redisstore", openRedis},
	{"pgstore", openPostgres},
	{"nearcache with redisstore in front of pgstore", openServers},
}

// bare is a store that all processes have in common.
func bare(st store.Store, end func()) (way, func()) {
	return func(behind func(store.Store) store.Store) store.Store { return behind(st) }, end
}

func openMemory(testing.TB) (way, func()) {
	return bare(memstore.New(nil), func() {})
}

// openNear has a cache for each process.
func openNear(t testing.TB) (way, func()) {
	return cached(t, memstore.New(nil), nil), func() {}
}

func openFront(t testing.TB) (way, func()) {
	return cached(t, memstore.New(nil), memstore.New(nil)), func() {}
}

// openServers has Redis in front of PostgreSQL.
func openServers(t testing.TB) (way, func()) {
	st, front := newPostgres(t, pgstore.Options{Notify: true, Partitions: 4}), newRedis(t)
	return cached(t, st, front), func() {
		ender(t, front)()
		ender(t, st)()
	}
}

func cached(t testing.TB, st, front store.Store) way {
	return func(behind func(store.Store) store.Store) store.Store {
		o := nearcache.Options{Skew: 1}
		if front != nil {
			o.Front = behind(front)
		}
		near, err := nearcache.New(behind(st), &o)
		if err != nil {
			t.Fatal(err)
		}
		return near
	}
}

func openShards(t testing.TB) (way, func()) {
	stores := []store.Store{memstore.New(nil), memstore.New(nil), memstore.New(nil)}
	return func(behind func(store.Store) store.Store) store.Store {
		var shards []shardstore.Shard
		for i, st := range stores {
			shards = append(shards, shardstore.Shard{Name: fmt.Sprint(i), Store: behind(st)})
		}
		st, err := shardstore.New(shards)
		if err != nil {
			t.Fatal(err)
		}
		return st
	}, func() {}
}

func openSQLite(t testing.TB) (way, func()) {
	st, err := sqlitestore.Open(t.Context(), filepath.Join(t.TempDir(), "storm.db"), &sqlitestore.Options{Relaxed: true})
	if err != nil {
		t.Fatal(err)
	}
	return bare(st, ender(t, st))
}

var opened atomic.Int64

func openRedis(t testing.TB) (way, func()) {
	st := newRedis(t)
	return bare(st, ender(t, st))
}

// newRedis opens a store with names of its own.
func newRedis(t testing.TB) *redisstore.Store {
	st, err := redisstore.Open(t.Context(), redistest.Database(t), &redisstore.Options{
		Prefix: fmt.Sprintf("storm-%d-%d:", os.Getpid(), opened.Add(1)), AllowPark: true,
	})
	if err != nil {
		t.Fatal(err)
	}
	return st
}

func openPostgres(t testing.TB) (way, func()) {
	st := newPostgres(t, pgstore.Options{})
	return bare(st, ender(t, st))
}

// newPostgres opens a store in a schema of its own.
func newPostgres(t testing.TB, o pgstore.Options) *pgstore.Store {
	o.Schema, o.Connections = fmt.Sprintf("storm_%d_%d", os.Getpid(), opened.Add(1)), 6
	st, err := pgstore.Open(t.Context(), pgtest.URL(t), &o)
	if err != nil {
		t.Fatal(err)
	}
	return st
}

func ender(t testing.TB, st interface{ Close() error }) func() {
	return func() {
		if err := st.Close(); err != nil {
			t.Error(err)
		}
	}
}
