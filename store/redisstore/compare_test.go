package redisstore

import (
	"context"
	"errors"
	"fmt"
	"os"
	"slices"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/semel-go/semel"
	"github.com/semel-go/semel/store"
	"github.com/semel-go/semel/store/redisstore/redistest"
)

// result is what each operation keeps.
var result = `{"id":"pay_0123456789","amount":4200,"currency":"EUR","status":"succeeded","created":"2026-11-20T17:00:00Z","customer":"cus_0123456789","description":"one of many","metadata":{"order":"0123456789"}}`

// published is the pattern that people copy: a lock with SETNX, a look at the
// result, the handler, and a pipeline that sets the result and deletes the
// lock.
type published struct{ c *redis.Client }

func (p *published) run(ctx context.Context, key string) error {
	won, err := p.c.SetNX(ctx, "idem:"+key+":lock", "1", 30*time.Second).Result()
	if err != nil {
		return err
	}
	_, err = p.c.Get(ctx, "idem:"+key).Result()
	if err == nil || !won {
		if won {
			err = p.c.Del(ctx, "idem:"+key+":lock").Err()
		}
		return err
	}
	if !errors.Is(err, redis.Nil) {
		return err
	}
	pipe := p.c.Pipeline()
	pipe.Set(ctx, "idem:"+key, result, 24*time.Hour)
	pipe.Del(ctx, "idem:"+key+":lock")
	_, err = pipe.Exec(ctx)
	return err
}

// contender is one way to run an operation once.
type contender struct {
	name string
	do   func(ctx context.Context, key string) error
}

// rate is the operations a second of g goroutines, of which every dups-th is a
// new key and the others repeat it, and the 50th and 99th percentile.
func (c *contender) rate(t *testing.T, run string, g, dups int, d time.Duration) (perSecond float64, p50, p99 time.Duration) {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), d)
	defer cancel()
	var n atomic.Int64
	took := make([][]time.Duration, g)
	var all sync.WaitGroup
	start := time.Now()
	for w := range g {
		all.Go(func() {
			for i := 0; ctx.Err() == nil; i++ {
				at := time.Now()
				if err := c.do(context.Background(), fmt.Sprint(run, "/", w, "/", i/dups)); err != nil {
					t.Errorf("%s: %v", c.name, err)
					return
				}
				took[w] = append(took[w], time.Since(at))
				n.Add(1)
			}
		})
	}
	all.Wait()
	perSecond = float64(n.Load()) / time.Since(start).Seconds()
	var every []time.Duration
	for _, ds := range took {
		every = append(every, ds...)
	}
	slices.Sort(every)
	return perSecond, every[len(every)/2], every[len(every)*99/100]
}

// versus runs contenders in turns, and reports each by the first. Each begins on
// an empty server: else one pays for the table that grew over what others wrote.
func versus(t *testing.T, c *redis.Client, what string, dups int, goroutines []int, cs ...contender) {
	t.Helper()
	const rounds, d = 7, 400 * time.Millisecond
	for _, g := range goroutines {
		rates, p50s, p99s := make([][]float64, len(cs)), make([][]time.Duration, len(cs)), make([][]time.Duration, len(cs))
		for round := range rounds {
			for i := range cs {
				if err := c.FlushDB(t.Context()).Err(); err != nil {
					t.Fatal(err)
				}
				r, p50, p99 := cs[i].rate(t, fmt.Sprint(what, g, cs[i].name, round), g, dups, d)
				rates[i], p50s[i], p99s[i] = append(rates[i], r), append(p50s[i], p50), append(p99s[i], p99)
			}
		}
		for i, c := range cs {
			ratios := make([]float64, rounds) // by round, because the machine's speed changes
			for round := range rounds {
				ratios[round] = rates[i][round] / rates[0][round]
			}
			t.Logf("%-10s %4d goroutines  %-10s %8.0f/s  %5.2fx  p50 %v  p99 %v", what, g, c.name, median(rates[i]), median(ratios),
				median(p50s[i]).Round(time.Microsecond), median(p99s[i]).Round(time.Microsecond))
		}
	}
}

func median[T float64 | time.Duration](v []T) T {
	v = slices.Sorted(slices.Values(v))
	return v[len(v)/2]
}

// TestStore_ComparedWithPublishedPattern measures, on a server of its own:
// SEMEL_TEST_COMPARE=1.
func TestStore_ComparedWithPublishedPattern(t *testing.T) {
	if os.Getenv("SEMEL_TEST_COMPARE") != "1" {
		t.Skip("a measurement: set SEMEL_TEST_COMPARE=1")
	}
	srv := redistest.Start(t, redistest.Fast...)
	c := redis.NewClient(&redis.Options{Addr: srv.Addr(), PoolSize: 32})
	t.Cleanup(func() { _ = c.Close() })
	s := openOn(t, c, nil)
	g, err := semel.New(s, nil)
	if err != nil {
		t.Fatal(err)
	}
	guarded := contender{"guard", func(ctx context.Context, key string) error {
		_, err := g.Run(ctx, semel.Call{Operation: "charge", Tenant: semel.Shared, Key: key, Payload: semel.NoPayload()}, func(context.Context, *semel.Execution) (store.Outcome, error) {
			return store.Outcome{Code: 200, Body: []byte(result)}, nil
		})
		return err
	}}
	bare := contender{"store", func(ctx context.Context, key string) error {
		f, err := s.Claim(ctx, proposal(key))
		if err != nil || !f.Won {
			return err
		}
		return s.Settle(ctx, f.Record.Lease(), store.Settlement{State: store.Completed, Attempt: 1, Keep: 24 * time.Hour, Outcome: store.Outcome{Code: 200, Body: []byte(result)}})
	}}
	first := contender{"published", (&published{c}).run}
	ping := contender{"PING", func(ctx context.Context, _ string) error { return c.Ping(ctx).Err() }}
	versus(t, c, "new", 1, []int{16, 64, 256}, first, bare, guarded, ping)
	versus(t, c, "50%", 2, []int{16, 64, 256}, first, bare, guarded)
	versus(t, c, "replay", 1<<40, []int{16, 64}, ping, first, bare, guarded) // one round trip each, two of the published pattern
}
