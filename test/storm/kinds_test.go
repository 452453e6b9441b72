package storm

import (
	"os"
	"testing"

	"github.com/semel-go/semel/store"
	"github.com/semel-go/semel/store/memstore"
	"github.com/semel-go/semel/store/nearcache"
	"github.com/semel-go/semel/store/pgstore"
	"github.com/semel-go/semel/test/internal/stores"
)

func TestMain(m *testing.M) { os.Exit(stores.Main(m)) }

// opener makes an empty store, which several processes then open.
type opener func(t testing.TB) (open processOpener, end func())

// processOpener opens the store for one more process. It wraps each store that
// the processes share.
type processOpener func(wrap func(store.Store) store.Store) store.Store

// kinds are the stores that have storms. A new store is one line.
var kinds = []struct {
	name string
	open opener
	slow bool // an emulator that on a busy machine needs longer than a lease of the storm
}{
	{"memstore", openMemory, false},
	{"nearcache", openCached, false},
	{"nearcache with a front", openCachedFront, false},
	{"shardstore", openShards, false},
	{"sqlitestore", func(t testing.TB) (processOpener, func()) { return direct(stores.SQLite(t)) }, false},
	{"redisstore", func(t testing.TB) (processOpener, func()) { return direct(stores.Redis(t)) }, false},
	{"dynamostore", func(t testing.TB) (processOpener, func()) { return direct(stores.Dynamo(t)) }, true},
	{"pgstore", func(t testing.TB) (processOpener, func()) { return direct(stores.Postgres(t, pgstore.Options{})) }, false},
	{"nearcache with redisstore in front of pgstore", openServers, false},
}

// direct is a store that all processes share as it is.
func direct(st store.Store, end func()) (processOpener, func()) {
	return func(wrap func(store.Store) store.Store) store.Store { return wrap(st) }, end
}

func openMemory(testing.TB) (processOpener, func()) {
	return direct(memstore.New(nil), func() {})
}

func openCached(t testing.TB) (processOpener, func()) {
	return cached(t, memstore.New(nil), nil), func() {}
}

func openCachedFront(t testing.TB) (processOpener, func()) {
	return cached(t, memstore.New(nil), memstore.New(nil)), func() {}
}

// openServers has Redis in front of PostgreSQL.
func openServers(t testing.TB) (processOpener, func()) {
	st, endStore := stores.Postgres(t, pgstore.Options{Notify: true, Partitions: 4})
	front, endFront := stores.Redis(t)
	return cached(t, st, front), func() {
		endFront()
		endStore()
	}
}

// cached has a cache for each process, over a store and perhaps a front that
// they share.
func cached(t testing.TB, st, front store.Store) processOpener {
	return func(wrap func(store.Store) store.Store) store.Store {
		o := nearcache.Options{Skew: 1}
		if front != nil {
			o.Front = wrap(front)
		}
		near, err := nearcache.New(wrap(st), &o)
		if err != nil {
			t.Fatal(err)
		}
		return near
	}
}

func openShards(t testing.TB) (processOpener, func()) {
	shards := stores.ThreeMemories()
	return func(wrap func(store.Store) store.Store) store.Store { return stores.Sharded(t, shards, wrap) }, func() {}
}
