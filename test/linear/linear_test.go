package linear

import (
	"fmt"
	"path/filepath"
	"runtime"
	"sync"
	"testing"
	"time"

	"github.com/semel-go/semel/store"
	"github.com/semel-go/semel/store/memstore"
	"github.com/semel-go/semel/store/sqlitestore"
	"github.com/semel-go/semel/test/internal/figure"
)

// stores are those whose histories are checked: a new store is one line.
var stores = []struct {
	name        string
	open        func(t testing.TB) (st store.Store, end func()) // empty, and for one history alone: a sweep goes through all
	short, long int                                             // histories
}{
	{"memstore", func(testing.TB) (store.Store, func()) { return memstore.New(nil), func() {} }, 300, 20_000},
	{"sqlitestore", openSQLite, 20, 300},
	{"pgstore", openPostgres, 20, 300},
	{"redisstore", openRedis, 20, 300},
	{cached, openCached, 20, 300},
	{"shardstore of three memstores", openSharded, 20, 300},
}

func openSQLite(t testing.TB) (store.Store, func()) {
	st, err := sqlitestore.Open(t.Context(), filepath.Join(t.TempDir(), "linear.db"), &sqlitestore.Options{Relaxed: true})
	if err != nil {
		t.Fatal(err)
	}
	return st, func() {
		if err := st.Close(); err != nil {
			t.Error(err)
		}
	}
}

func TestStoresAreLinearizable(t *testing.T) {
	for _, s := range stores {
		t.Run(s.name, func(t *testing.T) {
			n := s.short
			if figure.Long() {
				n = s.long
			}
			c := histories(t, n, func(i int) *History {
				st, end := s.open(t)
				defer end()
				return Record(t.Context(), st, Options{Seed: uint64(i), Faults: 0.06, Cached: s.name == cached})
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
