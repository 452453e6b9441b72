package pgstore

import (
	"context"
	"fmt"
	"os"
	"sync"
	"testing"
	"time"

	"github.com/semel-go/semel"
	"github.com/semel-go/semel/store"
	"github.com/semel-go/semel/store/pgstore/pgtest"
)

// pollOf is one poll of 500, of which every dups-th is new.
func pollOf(name string, dups int) []string {
	keys := make([]string, 500)
	for i := range keys {
		keys[i] = fmt.Sprint(name, "/", i/dups)
	}
	return keys
}

// TestRunBatch_ComparedWithPublishedPattern measures, with default durability,
// on a server of its own, polls of 500 with one business row for each message:
// SEMEL_TEST_COMPARE=1.
func TestRunBatch_ComparedWithPublishedPattern(t *testing.T) {
	if os.Getenv("SEMEL_TEST_COMPARE") != "1" {
		t.Skip("a measurement: set SEMEL_TEST_COMPARE=1")
	}
	srv := pgtest.Start(t, append([]string{"shared_buffers=256MB", "max_wal_size=4GB"}, pgtest.Durable...)...)
	s := openAt(t, srv.URL()+"&pool_max_conns=24", nil)
	pub := newPublished(t, s)
	a, err := NewAtomic(s, nil)
	if err != nil {
		t.Fatal(err)
	}
	outcome := store.Outcome{Code: 200, Body: []byte(result)}
	calls := func(keys []string) []semel.Call { return poll(keys...) }
	check := func(ends []BatchResult) error {
		for _, e := range ends {
			if e.Err != nil {
				return e.Err
			}
		}
		return nil
	}
	contenders := []struct {
		name string
		poll func(ctx context.Context, keys []string) error
	}{
		{"1 tx a message, 16 goroutines", func(ctx context.Context, keys []string) error { return byGoroutines(ctx, keys, 16, pub.oneTx) }},
		{"RunBatch, unnest", func(ctx context.Context, keys []string) error {
			return check(a.RunBatch(ctx, calls(keys), func(ctx context.Context, newCalls []*PendingCall) error {
				tx, _ := TxFrom(ctx)
				rows := make([]string, len(newCalls))
				for i, f := range newCalls {
					rows[i], f.Outcome = f.Execution.Key(), outcome
				}
				_, err := tx.Exec(ctx, "INSERT INTO business SELECT unnest($1::text[]), 1", rows)
				return err
			}))
		}},
		{"RunBatch, unnest, no outcome", func(ctx context.Context, keys []string) error {
			return check(a.RunBatch(ctx, calls(keys), func(ctx context.Context, newCalls []*PendingCall) error {
				tx, _ := TxFrom(ctx)
				rows := make([]string, len(newCalls))
				for i, f := range newCalls {
					rows[i] = f.Execution.Key()
				}
				_, err := tx.Exec(ctx, "INSERT INTO business SELECT unnest($1::text[]), 1", rows)
				return err
			}))
		}},
	}
	for _, dups := range []int{1, 2} {
		took := make([][]time.Duration, len(contenders))
		for round := range 9 {
			for i, c := range contenders {
				keys := pollOf(fmt.Sprint(dups, c.name, round), dups)
				start := time.Now()
				if err := c.poll(t.Context(), keys); err != nil {
					t.Fatalf("%s: %v", c.name, err)
				}
				if round > 1 { // the first find the caches cold
					took[i] = append(took[i], time.Since(start))
				}
			}
		}
		for i, c := range contenders {
			m := median(took[i])
			t.Logf("a poll of 500, %3d %% new: %-30s %8v  %7.0f/s  %5.2fx", 100/dups, c.name, m.Round(10*time.Microsecond), 500/m.Seconds(), median(took[0]).Seconds()/m.Seconds())
		}
	}
}

// byGoroutines does each key in a transaction of its own.
func byGoroutines(ctx context.Context, keys []string, g int, do func(context.Context, string) error) (err error) {
	var once sync.Once
	var all sync.WaitGroup
	next := make(chan string)
	for range g {
		all.Go(func() {
			for k := range next {
				if e := do(ctx, k); e != nil {
					once.Do(func() { err = e })
				}
			}
		})
	}
	for _, k := range keys {
		next <- k
	}
	close(next)
	all.Wait()
	return err
}
