package linear

import (
	"fmt"
	"os"
	"runtime"
	"sync"
	"testing"
	"time"

	"github.com/semel-go/semel/store"
	"github.com/semel-go/semel/store/memstore"
	"github.com/semel-go/semel/store/nearcache"
	"github.com/semel-go/semel/store/pgstore"
	"github.com/semel-go/semel/test/internal/figure"
	"github.com/semel-go/semel/test/internal/stores"
)

// kinds are the stores whose histories are checked. A new store is one line.
var kinds = []struct {
	name        string
	open        func(t testing.TB) (st store.Store, end func()) // an empty store for one history, which sweeps all records
	short, long int                                             // numbers of histories
}{
	{"memstore", openMemory, 300, 20_000},
	{"sqlitestore", func(t testing.TB) (store.Store, func()) { return stores.SQLite(t) }, 20, 300},
	{"pgstore", func(t testing.TB) (store.Store, func()) { return stores.Postgres(t, pgstore.Options{}) }, 20, 300},
	{"redisstore", func(t testing.TB) (store.Store, func()) { return stores.Redis(t) }, 20, 300},
	{"dynamostore", func(t testing.TB) (store.Store, func()) { return stores.Dynamo(t) }, 8, 300},
	{cached, openCached, 20, 300},
	{sharded, openSharded, 20, 300},
}

func TestMain(m *testing.M) { os.Exit(stores.Main(m)) }

func openMemory(testing.TB) (store.Store, func()) { return memstore.New(nil), func() {} }

func openSharded(t testing.TB) (store.Store, func()) {
	return stores.Sharded(t, stores.ThreeMemories(), nil), func() {}
}

// cached is a store whose cache all clients share, as the clients of one process
// do.
const cached = "nearcache before memstore"

const sharded = "shardstore of three memstores"

func openCached(t testing.TB) (store.Store, func()) {
	st, err := nearcache.New(memstore.New(nil), nil)
	if err != nil {
		t.Fatal(err)
	}
	return st, func() {}
}

func TestStores_UnderFaults_Linearizable(t *testing.T) {
	for _, s := range kinds {
		t.Run(s.name, func(t *testing.T) {
			n := s.short
			if figure.Long() {
				n = s.long
			}
			c := histories(t, n, func(i int) *History {
				st, end := s.open(t)
				defer end()
				return Record(t.Context(), st, Options{Seed: uint64(i), Faults: 0.06, Cached: s.name == cached, Sharded: s.name == sharded})
			})
			figure.Report(t, figure.Figure{
				Claim: "histories of a store under faults are linearizable", Where: s.name, Trials: int64(n), Failures: int64(c.illegal + c.unknown),
				Detail: fmt.Sprintf("%d operations by 6 clients at once", c.ops),
			})
			if c.illegal+c.unknown > 0 {
				t.Errorf("%d histories are not linearizable, %d could not be judged", c.illegal, c.unknown)
			}
		})
	}
}

type count struct{ ops, illegal, unknown int }

// histories makes and judges n histories.
func histories(t *testing.T, n int, record func(i int) *History) (c count) {
	var mu sync.Mutex
	var wg sync.WaitGroup
	next := make(chan int)
	for range runtime.GOMAXPROCS(0) {
		wg.Go(func() {
			for i := range next {
				h := record(i)
				res := Check(h, 5*time.Minute)
				mu.Lock()
				c.ops += h.Len()
				switch res {
				case Illegal:
					c.illegal++
				case Unknown:
					c.unknown++
				}
				if res != Ok && c.illegal+c.unknown < 3 {
					t.Logf("seed %d: %v", i, res)
					if res == Illegal {
						t.Log(Wrong(h))
					}
				}
				mu.Unlock()
			}
		})
	}
	for i := range n {
		next <- i
	}
	close(next)
	wg.Wait()
	return c
}
