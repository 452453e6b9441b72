package latency

import (
	"context"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"slices"
	"sync"
	"testing"
	"time"

	"github.com/jackc/pgx/v5/pgxpool"

	"github.com/semel-go/semel"
	"github.com/semel-go/semel/store"
	"github.com/semel-go/semel/store/dynamostore"
	"github.com/semel-go/semel/store/dynamostore/dynamotest"
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
	// newOnly: the server is a stub that keeps nothing, so that there are no replays.
	newOnly bool
}{
	{"memory", func(*testing.T) store.Store { return memstore.New(nil) }, false},
	{"SQLite", openSQLite, false},
	{"PostgreSQL", openPostgres, false},
	{"Redis, in memory", func(t *testing.T) store.Store { return openRedis(t, redistest.Fast) }, false},
	{"Redis, sync each write", func(t *testing.T) store.Store { return openRedis(t, redistest.Durable) }, false},
	{"DynamoDB, 5 ms away", openDynamo, true},
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
			call(t, guard, "warm", 16, 50)
			for _, callers := range []int{1, 64} {
				name := fmt.Sprint(callers)
				fresh := call(t, guard, name, callers, 2000/callers+100)
				replays := "no replays"
				if !s.newOnly {
					replays = percentiles(call(t, guard, name, callers, 2000/callers+100))
				}
				t.Logf("%-24s %2d callers: new calls %s; replays %s", s.name, callers, percentiles(fresh), replays)
			}
		})
	}
}

// call makes calls and returns how long each took, the shortest first. With the same name
// they have the same keys.
func call(t *testing.T, guard *semel.Guard, name string, callers, each int) []time.Duration {
	t.Helper()
	took := make([][]time.Duration, callers)
	var all sync.WaitGroup
	for c := range callers {
		all.Go(func() {
			for n := range each {
				begun := time.Now()
				_, err := semel.Do(t.Context(), guard, semel.Call{Operation: "pay", Tenant: "ann", Key: fmt.Sprint(name, "-", c, "-", n), Payload: semel.JSON(n)},
					func(context.Context, *semel.Execution) (int, error) { return n, nil })
				if err != nil {
					t.Error(err)
					return
				}
				took[c] = append(took[c], time.Since(begun))
			}
		})
	}
	all.Wait()
	return slices.Sorted(slices.Values(slices.Concat(took...)))
}

func percentiles(took []time.Duration) string {
	if len(took) == 0 {
		return "none"
	}
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

// openDynamo opens a store whose server answers each request after 5 ms, as DynamoDB
// answers a write without old values.
func openDynamo(t *testing.T) store.Store {
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		_, _ = io.Copy(io.Discard, r.Body) // a client that ended is seen by the test
		<-time.After(5 * time.Millisecond)
		w.Header().Set("Content-Type", "application/x-amz-json-1.0")
		_, _ = w.Write([]byte("{}"))
	}))
	t.Cleanup(server.Close)
	st, err := dynamostore.New(dynamotest.Client(server.URL), "t", nil)
	if err != nil {
		t.Fatal(err)
	}
	return st
}
