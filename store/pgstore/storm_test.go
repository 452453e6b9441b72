package pgstore

import (
	"context"
	"fmt"
	"math/rand/v2"
	"os"
	"slices"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/semel-go/semel"
	"github.com/semel-go/semel/store/pgstore/internal/table"
)

// storm is callers that run the same keys in every way that there is, leased and
// Atomic, while their handlers fail in all their ways, connections break, statements
// are cancelled, and rows are locked. Each of these has tests of its own; here they
// meet.
type storm struct {
	*shop
	g    *semel.Guard
	who  string // the store's connections
	runs atomic.Int64

	mu      sync.Mutex
	answers map[string]map[string]int // answers to callers, by key
	wrong   []string
}

// SEMEL_TEST_STORM=7,20 has the storms of 20 seeds from 7 on.
func TestStorm_AllForms_EffectsOnce(t *testing.T) {
	first, n := 1, 2
	if is := os.Getenv("SEMEL_TEST_STORM"); is != "" {
		if _, err := fmt.Sscanf(is, "%d,%d", &first, &n); err != nil {
			t.Fatalf("SEMEL_TEST_STORM: is %q; want the first seed and how many, as 7,20: %v", is, err)
		}
	}
	for seed := first; seed < first+n; seed++ {
		t.Run(fmt.Sprint(seed), func(t *testing.T) {
			s := newStorm(t)
			keys := s.run(uint64(seed)) //nolint:gosec // it is a seed
			s.check(t, keys)
		})
	}
}

func newStorm(t *testing.T) *storm {
	s := &storm{answers: map[string]map[string]int{}}
	base := openNew(t, nil)
	s.who = fmt.Sprint("storm_", os.Getpid(), "_", schemas.Load())
	o := base.options
	s.shop = newShop(t, openAt(t, base.appPool.Config().ConnString()+"&pool_max_conns=10&application_name="+s.who, &o), nil)
	mustExec(t, base.appPool, "ALTER TABLE "+s.table+" ADD run text, ADD how text")
	child := pgx.Identifier{o.Schema, "child"}.Sanitize()
	mustExec(t, base.appPool, "CREATE TABLE "+child+" (id serial PRIMARY KEY, parent int REFERENCES "+child+" DEFERRABLE INITIALLY DEFERRED)")
	var err error
	if s.g, err = semel.New(s.s, &semel.Options{Lease: 2 * time.Second, Backoff: func(int) time.Duration { return time.Millisecond }}); err != nil {
		t.Fatal(err)
	}
	return s
}

const (
	stormKeys    = 240
	stormWindow  = 10
	stormCallers = 16
)

// run has callers run keys until each had its time.
func (s *storm) run(seed uint64) []string {
	keys := numbered("k", stormKeys)
	var calls atomic.Int64
	var all sync.WaitGroup
	over := make(chan struct{})
	var weather sync.WaitGroup
	weather.Go(func() { s.disturb(rand.New(rand.NewPCG(seed, 99)), keys, &calls, over) })
	for w := range stormCallers {
		r := rand.New(rand.NewPCG(seed, uint64(w)))
		all.Go(func() {
			for {
				at := int(calls.Add(1)) / 16 // so often each, and in every form
				if at >= stormKeys {
					return
				}
				some := slices.Clone(keys[max(0, at-stormWindow):][:stormWindow])
				r.Shuffle(len(some), func(i, j int) { some[i], some[j] = some[j], some[i] })
				s.once(r, some)
			}
		})
	}
	all.Wait()
	close(over)
	weather.Wait()
	return keys
}

// disturb is what comes from outside.
func (s *storm) disturb(r *rand.Rand, keys []string, calls *atomic.Int64, over chan struct{}) {
	conn, err := pgx.ConnectConfig(context.Background(), s.s.appPool.Config().ConnConfig.Copy())
	if err != nil {
		panic(err)
	}
	defer func() { _ = conn.Close(context.Background()) }()
	_, _ = conn.Exec(context.Background(), "SET application_name = 'weather'")
	for {
		select {
		case <-over:
			return
		case <-time.After(time.Duration(r.IntN(60)) * time.Millisecond):
		}
		switch r.IntN(3) {
		case 0:
			_, _ = conn.Exec(context.Background(), "SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE application_name = $1 ORDER BY random() LIMIT 1", s.who)
		case 1:
			_, _ = conn.Exec(context.Background(), "SELECT pg_cancel_backend(pid) FROM pg_stat_activity WHERE application_name = $1 AND state <> 'idle' ORDER BY random() LIMIT 1", s.who)
		case 2:
			key := keys[min(int(calls.Load())/16, stormKeys-1)]
			_ = pgx.BeginFunc(context.Background(), conn, func(tx pgx.Tx) error {
				_, err := tx.Exec(context.Background(), "SELECT pg_sleep($2) FROM "+pgx.Identifier{s.s.options.Schema, table.Name}.Sanitize()+" WHERE key = $1::bytea FOR UPDATE", []byte(key), r.Float64()*0.15)
				return err
			})
		}
	}
}
