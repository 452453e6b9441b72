package outage

import (
	"context"
	"errors"
	"fmt"
	"strconv"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"

	"github.com/semel-go/semel"
	"github.com/semel-go/semel/store/pgstore"
	"github.com/semel-go/semel/store/pgstore/pgtest"
	"github.com/semel-go/semel/test/internal/figure"
)

// A server freezes while Atomic calls are in flight, whose callers have no deadline. Each
// returns within StoreTimeout for the claim, or within StoreTimeout for COMMIT and as
// long again for the question whether it has committed; the time of the handler does not
// count. When the server goes on, each key has one effect.
func TestServerFreezes_AtomicCallsReturnWithinLimit(t *testing.T) {
	limit, _ := limits()
	srv := pgtest.Start(t, pgtest.Durable...)
	url := "postgres://postgres@127.0.0.1:" + strconv.Itoa(srv.Port()) + "/postgres?sslmode=disable"
	st, err := pgstore.Open(t.Context(), url+"&pool_max_conns=16", nil) // so that no call waits for another's connection
	if err != nil {
		t.Fatal(err)
	}
	defer st.Close()
	pool, err := pgxpool.New(t.Context(), url)
	if err != nil {
		t.Fatal(err)
	}
	defer pool.Close()
	if _, err := pool.Exec(t.Context(), "CREATE TABLE effect (key text)"); err != nil {
		t.Fatal(err)
	}
	a, err := pgstore.NewAtomic(st, &semel.Options{StoreTimeout: limit})
	if err != nil {
		t.Fatal(err)
	}
	run := func(key string) (ran bool, took time.Duration, err error) {
		began, handled := time.Now(), time.Duration(0)
		call := semel.Call{Operation: "op", Tenant: "t", Key: key, Payload: semel.NoPayload()}
		err = pgstore.Once(context.Background(), a, call, func(ctx context.Context, _ *semel.Execution, tx pgx.Tx) error {
			ran = true
			defer func(began time.Time) { handled += time.Since(began) }(time.Now())
			<-time.After(10 * time.Millisecond)
			ctx, cancel := context.WithTimeout(ctx, limit) // the handler's own statements have no other limit
			defer cancel()
			_, err := tx.Exec(ctx, "INSERT INTO effect VALUES ($1)", key)
			return err
		})
		return ran, time.Since(began) - handled, err
	}
	var keys, ok, refused, doubt atomic.Int64
	var longest, longestRun atomic.Int64
	var frozen atomic.Bool
	ctx, stop := context.WithCancel(t.Context())
	defer stop()
	var all sync.WaitGroup
	for range 12 {
		all.Go(func() {
			for ctx.Err() == nil {
				key := strconv.FormatInt(keys.Add(1), 10)
				ran, took, err := run(key)
				if !frozen.Load() {
					switch {
					case err == nil:
						ok.Add(1)
					case !tookTooLong(err):
						t.Errorf("before the outage: %v", err)
					}
					continue
				}
				to := &longest
				if ran {
					to = &longestRun
				}
				for was := to.Load(); int64(took) > was && !to.CompareAndSwap(was, int64(took)); was = to.Load() {
				}
				switch {
				case errors.Is(err, semel.ErrInDoubt):
					doubt.Add(1)
				case errors.Is(err, semel.ErrUnavailable):
					refused.Add(1)
				case err != nil && !ran:
					t.Errorf("in the outage: %v", err)
				}
			}
		})
	}
	late := measureDelays()
	waitForCalls(t, &ok, 50)
	frozen.Store(true)
	freeze(t, srv.DataDir(), true)
	<-time.After(3 * limit)
	stop()
	ended := make(chan struct{})
	go func() { all.Wait(); close(ended) }()
	select {
	case <-ended:
	case <-time.After(4*limit + 15*time.Second):
		t.Error("calls hang")
	}
	freeze(t, srv.DataDir(), false)
	<-ended
	most, mostRun, longestDelay := time.Duration(longest.Load()), time.Duration(longestRun.Load()), late()
	allowed := slack + longestDelay
	if most > limit+allowed || mostRun > 2*limit+allowed {
		t.Errorf("a call without a run took %v, limit %v; one with a run %v besides its handler, limit %v; timers were up to %v late",
			most, limit, mostRun, 2*limit, longestDelay)
	}
	if refused.Load() == 0 {
		t.Error("no call was refused")
	}
	wrong := int64(0)
	for i := range keys.Load() {
		key := strconv.FormatInt(i+1, 10)
		_, _, err := run(key)
		for end := time.Now().Add(time.Minute); err != nil && time.Now().Before(end); _, _, err = run(key) {
			<-time.After(20 * time.Millisecond)
		}
		n := 0
		if err == nil {
			err = pool.QueryRow(t.Context(), "SELECT count(*) FROM effect WHERE key = $1", key).Scan(&n)
		}
		if err != nil || n != 1 {
			wrong++
			t.Errorf("after the outage: %s has %d effects, %v", key, n, err)
		}
	}
	figure.Report(t, figure.Figure{
		Claim: "an Atomic call without a deadline returns within its limit and a second when PostgreSQL is frozen under load, and has one effect", Where: "PostgreSQL",
		Trials: keys.Load(), Failures: wrong,
		Detail: fmt.Sprintf("limit %v: the longest wait was %v, and %v with a run (limit %v); %d calls were refused, %d in doubt",
			limit, most.Round(time.Millisecond), mostRun.Round(time.Millisecond), 2*limit, refused.Load(), doubt.Load()),
	})
}
