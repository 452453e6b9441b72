package latency

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"sync"
	"testing"
	"time"

	"github.com/jackc/pgx/v5/pgxpool"

	"github.com/semel-go/semel"
	"github.com/semel-go/semel/store"
	"github.com/semel-go/semel/store/memstore"
	"github.com/semel-go/semel/store/pgstore"
	"github.com/semel-go/semel/store/pgstore/pgtest"
	"github.com/semel-go/semel/store/redisstore"
	"github.com/semel-go/semel/store/redisstore/redistest"
	"github.com/semel-go/semel/store/sqlitestore"
)

// stores are measured one after the other, each with its own server.
var stores = []struct {
	name string
	open func(t *testing.T) store.Store
}{
	{"memory", func(*testing.T) store.Store { return memstore.New(nil) }},
	{"SQLite", openSQLite},
	{"PostgreSQL", openPostgres},
	{"Redis, in memory", func(t *testing.T) store.Store { return openRedis(t, redistest.Fast) }},
	{"Redis, sync each write", func(t *testing.T) store.Store { return openRedis(t, redistest.Durable) }},
	{"DynamoDB, 5 ms away", openDynamo},
}

// The handler does nothing, so that the duration of a call is what Semel adds to a handler.
func TestDo_AddedLatency_EachStore(t *testing.T) {
	if os.Getenv("SEMEL_BENCH") == "" {
		t.Skip("measures for a minute; run it with SEMEL_BENCH=1")
	}
	for _, s := range stores {
		t.Run(s.name, func(t *testing.T) {
			guard, err := semel.New(s.open(t), nil)
			if err != nil {
				t.Fatal(err)
			}
			call(t, guard, "warm", 16, 50, true)
			for _, callers := range []int{1, 64} {
				name := fmt.Sprint(callers)
				fresh := call(t, guard, name, callers, 2000/callers+100, true)
				replays := call(t, guard, name, callers, 2000/callers+100, false)
				t.Logf("%-24s %2d callers: new calls %s; replays %s", s.name, callers, percentiles(fresh), percentiles(replays))
			}
		})
	}
}

// call makes calls and returns how long each took, the shortest first. With the same name
// they have the same keys. It fails the test if the handler runs in calls that are not new.
func call(t *testing.T, guard *semel.Guard, name string, callers, each int, isNew bool) []time.Duration {
	t.Helper()
	took := make([][]time.Duration, callers)
	var all sync.WaitGroup
	for c := range callers {
		all.Go(func() {
			for n := range each {
				begun, ran := time.Now(), false
				got, err := semel.Do(t.Context(), guard, semel.Call{Operation: "pay", Tenant: "ann", Key: fmt.Sprint(name, "-", c, "-", n), Payload: semel.JSON(n)},
					func(context.Context, *semel.Execution) (int, error) {
						ran = true
						return n, nil
					})
				took[c] = append(took[c], time.Since(begun))
				if err != nil || got != n || ran != isNew {
					t.Errorf("call %d gave %d, error %v, and its handler ran: %v, want %v", n, got, err, ran, isNew)
					return
				}
			}
		})
	}
	all.Wait()
	return slices.Sorted(slices.Values(slices.Concat(took...)))
}

func percentiles(took []time.Duration) string {
	at := func(percent int) float64 { return took[len(took)*percent/100].Seconds() * 1000 }
	return fmt.Sprintf("p50 %.2f ms, p99 %.2f ms", at(50), at(99))
}

func openSQLite(t *testing.T) store.Store {
	st, err := sqlitestore.Open(t.Context(), filepath.Join(t.TempDir(), "semel.db"), nil)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = st.Close() })
	return st
}

func openPostgres(t *testing.T) store.Store {
	pool, err := pgxpool.New(t.Context(), pgtest.Start(t, pgtest.Durable...).URL())
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(pool.Close)
	st, err := pgstore.New(t.Context(), pool, nil)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = st.Close() })
	return st
}

func openRedis(t *testing.T, settings []string) store.Store {
	st, err := redisstore.Open(t.Context(), redistest.Start(t, settings...).URL(), nil)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = st.Close() })
	return st
}
