package pgstore

import (
	"context"
	"errors"
	"slices"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"

	"github.com/semel-go/semel"
	"github.com/semel-go/semel/store/pgstore/pgtest"
)

// smallPool is a shop whose pool has so few connections that runs wait for them.
type smallPool struct {
	*shop
	app *pgxpool.Pool
}

func newSmallPool(t *testing.T, url string, conns int32, set func(*pgxpool.Config)) *smallPool {
	t.Helper()
	cfg, err := pgxpool.ParseConfig(url)
	if err != nil {
		t.Fatal(err)
	}
	c := &smallPool{}
	cfg.MaxConns = conns
	if set != nil {
		set(cfg)
	}
	if c.app, err = pgxpool.NewWithConfig(t.Context(), cfg); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(c.app.Close)
	s, err := New(t.Context(), c.app, &Options{Schema: newSchema(t, url)})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = s.Close() })
	c.shop = newShop(t, s, nil)
	t.Cleanup(func() { c.wantAllReturned(t) })
	return c
}

// wantAllReturned waits until no run has a connection.
func (c *smallPool) wantAllReturned(t *testing.T) {
	t.Helper()
	waitFor(t, "all connections are back", func() bool { return c.app.Stat().AcquiredConns() == 0 })
}

// startedRun is a run whose handler has written its row, and goes on when told.
type startedRun struct {
	tx   pgx.Tx
	ran  atomic.Bool
	goOn chan func() error
	got  string
	err  error
	done chan struct{}
}

func (c *smallPool) start(ctx context.Context, key string) *startedRun {
	r := &startedRun{goOn: make(chan func() error, 1), done: make(chan struct{})}
	go func() {
		defer close(r.done)
		r.err = errors.New("panic, or runtime.Goexit")
		defer func() { _ = recover() }()
		r.got, r.err = Do(ctx, c.a, call(key), func(ctx context.Context, x *semel.Execution, tx pgx.Tx) (string, error) {
			r.tx = tx
			got, err := c.pay(key, nil)(ctx, x, tx)
			if r.ran.Store(true); err == nil {
				err = (<-r.goOn)()
			}
			return got, err
		})
	}()
	return r
}

func noError() error { return nil }

// startInTx is a run that has the only connection.
func (c *smallPool) startInTx(t *testing.T, key string) *startedRun {
	t.Helper()
	r := c.start(t.Context(), key)
	waitFor(t, "the first runs", r.ran.Load)
	return r
}

func (r *startedRun) want(t *testing.T, key string) {
	t.Helper()
	r.goOn <- noError
	if <-r.done; r.err != nil || r.got != "receipt of "+key {
		t.Errorf("run of %s: %q, %v", key, r.got, r.err)
	}
}

// Many calls at once for few connections, directly and through a pooler: each
// effect happens once, and no connection is lost.
func TestAtomic_ManyCallsForFewConnections_EachEffectOnce(t *testing.T) {
	t.Parallel()
	for name, newCrowd := range map[string]func(*testing.T) *smallPool{
		"directly": func(t *testing.T) *smallPool { return newSmallPool(t, pgtest.URL(t), 3, nil) },
		"through PgBouncer": func(t *testing.T) *smallPool {
			return newSmallPool(t, pgtest.Bouncer(t, pgtest.URL(t)), 3, nil)
		},
		"by simple queries": func(t *testing.T) *smallPool {
			return newSmallPool(t, pgtest.URL(t), 3, func(cfg *pgxpool.Config) {
				cfg.ConnConfig.DefaultQueryExecMode = pgx.QueryExecModeSimpleProtocol
			})
		},
	} {
		t.Run(name, func(t *testing.T) {
			c := newCrowd(t)
			const keys, each = 60, 4
			var all sync.WaitGroup
			for i := range keys * each {
				all.Go(func() {
					ctx, key := t.Context(), itoa(i%keys)
					if i%7 == 0 { // some have little time
						var cancel context.CancelFunc
						ctx, cancel = context.WithTimeout(ctx, time.Duration(i)*time.Millisecond/2)
						defer cancel()
					}
					waiting, tries := call(key), 0
					waiting.Wait = time.Minute
					for ctx.Err() == nil {
						_, err := Do(ctx, c.a, waiting, func(ctx context.Context, x *semel.Execution, tx pgx.Tx) (string, error) {
							if tries++; i%5 == 0 && tries == 1 {
								return "", errors.New("not at once")
							}
							return c.pay(key, nil)(ctx, x, tx)
						})
						if err == nil {
							return
						}
					}
				})
			}
			all.Wait()
			want := make([]string, keys)
			for i := range want {
				want[i] = itoa(i)
			}
			slices.Sort(want)
			c.want(t, want...)
		})
	}
}
