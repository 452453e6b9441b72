package pgstore

import (
	"context"
	"errors"
	"runtime"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"

	"github.com/semel-go/semel"
	"github.com/semel-go/semel/store"
	"github.com/semel-go/semel/store/pgstore/pgtest"
)

func TestAConnectionIsHandedToWhoWaits(t *testing.T) {
	c := newCrowded(t, pgtest.URL(t), 1, func(cfg *pgxpool.Config) {
		cfg.ConnConfig.RuntimeParams["default_transaction_isolation"] = "repeatable read"
	})
	runs := []*started{c.holding(t, "0")}
	for i := 1; i < 4; i++ {
		runs = append(runs, c.start(t.Context(), itoa(i)))
		c.waits(t, i)
	}
	for i, r := range runs {
		if i > 0 {
			waitFor(t, "the next runs", r.ran.Load)
			if err := errors.Join(func() error { _, err := runs[i-1].tx.Exec(t.Context(), "SELECT 1"); return err }()); !errors.Is(err, pgx.ErrTxClosed) {
				t.Errorf("the transaction of a run that has ended: %v", err)
			}
			const is = "SELECT current_setting('transaction_isolation') || ' ' || current_setting('idle_in_transaction_session_timeout')"
			if got := ask[string](t, r.tx, is); got != "read committed 30s" {
				t.Errorf("the transaction that was handed over has %q", got)
			}
			if slices.ContainsFunc(runs[i+1:], func(r *started) bool { return r.ran.Load() }) {
				t.Error("one was before its turn")
			}
		}
		r.want(t, itoa(i))
	}
	c.want(t, "0", "1", "2", "3")
	if n := c.n.Load(); n != 3 {
		t.Errorf("%d of 3 connections were handed over", n)
	}
}

func TestWhoIsHandedAConnectionFindsWhatIsKept(t *testing.T) {
	for way, newCrowd := range crowds {
		t.Run(way, func(t *testing.T) {
			c := newCrowd(t, pgtest.URL(t), 1, nil)
			c.holding(t, "old").want(t, "old")
			first := c.holding(t, "k")
			dup := c.start(t.Context(), "k")
			c.waits(t, 1)
			old := c.start(t.Context(), "old")
			c.waits(t, 2)
			last := c.start(t.Context(), "last")
			c.waits(t, 3)
			for _, r := range []struct {
				*started
				key string
			}{{first, "k"}, {dup, "k"}, {old, "old"}, {last, "last"}} {
				r.want(t, r.key)
			}
			if dup.ran.Load() || old.ran.Load() {
				t.Error("a duplicate ran")
			}
			c.want(t, "k", "last", "old")
			if c.n.Load() == 0 {
				t.Error("no connection was handed over: this test shows nothing")
			}
		})
	}
}

func TestARunThatDoesNotCommitHandsNothingOver(t *testing.T) {
	for name, end := range map[string]func(*crowded) error{
		"an error": func(*crowded) error { return errors.New("declined") },
		"a panic":  func(*crowded) error { panic("oops") },
		"an exit":  func(*crowded) error { runtime.Goexit(); return nil },
		"a tracer that panics": func(c *crowded) error {
			c.panics.Store(true)
			return nil
		},
	} {
		for way, newCrowd := range crowds {
			if way == "directly" && name == "a tracer that panics" {
				continue
			}
			t.Run(name+" "+way, func(t *testing.T) {
				c := newCrowd(t, pgtest.URL(t), 1, nil)
				first := c.holding(t, "a")
				second := c.start(t.Context(), "b")
				c.waits(t, 1)
				first.goOn <- func() error { return end(c) }
				second.want(t, "b")
				if <-first.done; first.err == nil {
					t.Error("the first has no error")
				}
				c.want(t, "b")
			})
		}
	}
}

func TestACommitThatFailsHandsNothingOver(t *testing.T) {
	for way, newCrowd := range crowds {
		t.Run(way, func(t *testing.T) {
			c := newCrowd(t, pgtest.URL(t), 1, nil)
			mustExec(t, c.app, "ALTER TABLE "+c.table+" ADD UNIQUE (key) DEFERRABLE INITIALLY DEFERRED")
			mustExec(t, c.app, "INSERT INTO "+c.table+" VALUES ('a')")
			first := c.holding(t, "a")
			second := c.start(t.Context(), "b")
			c.waits(t, 1)
			first.goOn <- fine
			if <-first.done; first.err == nil || !strings.Contains(first.err.Error(), "duplicate key") {
				t.Errorf("the commit that fails: %v", first.err)
			}
			second.want(t, "b")
			c.want(t, "a", "b")
		})
	}
}

// Both he who hands over and he who was handed a connection may fail for good:
// what they wrote is undone, and the failure kept.
func TestAFailureIsKeptAndTheConnectionHandedOver(t *testing.T) {
	for way, newCrowd := range crowds {
		t.Run(way, func(t *testing.T) {
			c := newCrowd(t, pgtest.URL(t), 1, nil)
			declined := func() error { return &semel.Failure{Code: "declined", Message: "no funds"} }
			var runs []*started
			for i, key := range []string{"a", "b", "c"} {
				runs = append(runs, c.start(t.Context(), key))
				if i == 0 {
					waitFor(t, "the first runs", runs[0].ran.Load)
				} else {
					c.waits(t, i)
				}
			}
			for _, r := range runs[:2] {
				r.goOn <- declined
				<-r.done
				if f, ok := errors.AsType[*semel.Failure](r.err); !ok || f.Code != "declined" {
					t.Errorf("a run that failed: %v", r.err)
				}
			}
			runs[2].want(t, "c")
			c.want(t, "c")
			for _, key := range []string{"a", "b"} {
				if r, err := c.record(t, key); err != nil || r.State != store.Failed {
					t.Errorf("the record of %s: %v, %v", key, r.State, err)
				}
			}
			if n := c.n.Load(); n != 2 {
				t.Errorf("%d of 2 connections were handed over", n)
			}
		})
	}
}

func TestWhoWaitsForATurnMayGiveUp(t *testing.T) {
	c := newCrowded(t, pgtest.URL(t), 1, nil)
	first := c.holding(t, "a")
	ctx, cancel := context.WithCancel(t.Context())
	gone := c.start(ctx, "b")
	c.waits(t, 1)
	second := c.start(t.Context(), "c")
	c.waits(t, 2)
	cancel()
	if <-gone.done; !errors.Is(gone.err, context.Canceled) {
		t.Errorf("who gave up: %v", gone.err)
	}
	c.waits(t, 1)
	first.want(t, "a")
	second.want(t, "c")
	c.want(t, "a", "c")
}

func TestWhoIsBegunForMayGiveUp(t *testing.T) {
	for way, newCrowd := range crowds {
		t.Run(way, func(t *testing.T) {
			c := newCrowd(t, pgtest.URL(t), 1, nil)
			first := c.holding(t, "a")
			ctx, cancel := context.WithCancel(t.Context())
			gone := c.start(ctx, "b")
			c.waits(t, 1)
			looks, stop := c.holdUp(t)
			first.goOn <- fine
			looks()
			cancel()
			if <-gone.done; !errors.Is(gone.err, context.Canceled) {
				t.Errorf("who gave up: %v", gone.err)
			}
			stop()
			if <-first.done; first.err != nil {
				t.Errorf("the first: %v", first.err)
			}
			c.allBack(t)
			c.holding(t, "b").want(t, "b")
			c.want(t, "a", "b")
		})
	}
}

// What befalls the look of the next is not the business of who has committed.
func TestALookThatFailsFailsNotTheCommitBeforeIt(t *testing.T) {
	for _, name := range []string{"refused", "cut"} {
		for way, newCrowd := range crowds {
			t.Run(name+" "+way, func(t *testing.T) {
				c := newCrowd(t, pgtest.URL(t), 1, func(cfg *pgxpool.Config) {
					if name == "refused" {
						cfg.ConnConfig.RuntimeParams["lock_timeout"] = "200ms"
					}
				})
				first := c.holding(t, "a")
				pid := first.tx.Conn().PgConn().PID()
				second := c.start(t.Context(), "b")
				c.waits(t, 1)
				looks, stop := c.holdUp(t)
				first.goOn <- fine
				looks()
				if name == "cut" {
					mustExec(t, c.s.own, "SELECT pg_terminate_backend($1)", pid)
					stop()
				}
				if <-first.done; first.err != nil || first.got != "receipt of a" {
					t.Errorf("the first: %q, %v", first.got, first.err)
				}
				stop()
				second.goOn <- fine
				if <-second.done; second.err != nil && code(second.err) != lockNotAvailable { // it has looked by itself
					t.Errorf("the second: %v", second.err)
				}
				if n := c.n.Load(); n != 1 {
					t.Errorf("%d connections were to be handed over", n)
				}
				c.holding(t, "c").want(t, "c")
			})
		}
	}
}

func TestOthersGetAConnectionFromACrowd(t *testing.T) {
	c := newDirectCrowd(t, pgtest.URL(t), 1, nil)
	ctx, cancel := context.WithCancel(t.Context())
	var ran atomic.Int64
	var all sync.WaitGroup
	for g := range 8 {
		all.Go(func() {
			for i := 0; ctx.Err() == nil; i++ {
				key := itoa(g) + "/" + itoa(i)
				if _, err := Do(t.Context(), c.a, call(key), c.pay(key, nil)); err != nil {
					t.Error(err)
				}
				ran.Add(1)
			}
		})
	}
	waitFor(t, "connections are handed over", func() bool { return c.n.Load() > 3*maxHanded })
	for range 10 {
		before := ran.Load()
		in, done := context.WithTimeout(t.Context(), 20*time.Second)
		conn, err := c.app.Acquire(in)
		if done(); err != nil {
			t.Error("another who waits for a connection gets none:", err)
			break
		}
		if n := ran.Load() - before; n > maxHanded+10 {
			t.Errorf("another waited for a connection while %d runs had it", n)
		}
		conn.Release()
	}
	cancel()
	all.Wait()
}

func TestThePoolsHooksSeeEachConnection(t *testing.T) {
	var seen atomic.Int32
	for name, set := range map[string]func(*pgxpool.Config){
		"PrepareConn": func(cfg *pgxpool.Config) {
			cfg.PrepareConn = func(context.Context, *pgx.Conn) (bool, error) { return seen.Add(1) > 0, nil }
		},
		"BeforeAcquire": func(cfg *pgxpool.Config) {
			cfg.BeforeAcquire = func(context.Context, *pgx.Conn) bool { return seen.Add(1) > 0 } //nolint:staticcheck // it may still be in use
		},
		"AfterRelease": func(cfg *pgxpool.Config) {
			cfg.AfterRelease = func(*pgx.Conn) bool { return seen.Add(1) > 0 }
		},
	} {
		t.Run(name, func(t *testing.T) {
			c := newCrowded(t, pgtest.URL(t), 2, set)
			t.Cleanup(func() { c.s.relay.room = 2 }) // for allBack
			seen.Store(0)
			var all sync.WaitGroup
			for i := range 50 {
				all.Go(func() {
					if _, err := Do(t.Context(), c.a, call(itoa(i)), c.pay(itoa(i), nil)); err != nil {
						t.Error(err)
					}
				})
			}
			all.Wait()
			if c.n.Load() != 0 {
				t.Fatalf("%d of 50 runs got their connection past the hook", c.n.Load())
			}
			waitFor(t, "the hook has seen all runs", func() bool { return seen.Load() >= 50 })
		})
	}
}

func TestWhoWaitsWhenTheStoreIsClosed(t *testing.T) {
	c := newCrowded(t, pgtest.URL(t), 1, nil)
	first := c.holding(t, "a")
	second := c.start(t.Context(), "b")
	c.waits(t, 1)
	if err := c.s.Close(); err != nil {
		t.Fatal(err)
	}
	first.want(t, "a")
	if <-second.done; !errors.Is(second.err, ErrClosed) {
		t.Errorf("who waited: %v", second.err)
	}
}

// All of it at once, through a pooler too: each effect once, and nothing is left.
func TestACrowdOfRuns(t *testing.T) {
	for name, newCrowd := range map[string]func(*testing.T) *crowded{
		"by pgx":   func(t *testing.T) *crowded { return newCrowded(t, pgtest.URL(t), 3, nil) },
		"directly": func(t *testing.T) *crowded { return newDirectCrowd(t, pgtest.URL(t), 3, nil) },
		"through PgBouncer": func(t *testing.T) *crowded {
			return newCrowded(t, pgtest.Bouncer(t, pgtest.URL(t)), 3, nil)
		},
		"by simple queries": func(t *testing.T) *crowded {
			return newCrowded(t, pgtest.URL(t), 3, func(cfg *pgxpool.Config) {
				cfg.ConnConfig.DefaultQueryExecMode = pgx.QueryExecModeSimpleProtocol
			})
		},
	} {
		t.Run(name, func(t *testing.T) {
			c := newCrowd(t)
			c.s.traced = false // the tracer keeps nothing, so memory is used again
			const keys, each = 60, 4
			var ran, gaveUp atomic.Int64
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
					for {
						_, err := Do(ctx, c.a, waiting, func(ctx context.Context, x *semel.Execution, tx pgx.Tx) (string, error) {
							ran.Add(1)
							if tries++; i%5 == 0 && tries == 1 {
								return "", errors.New("not at once")
							}
							return c.pay(key, nil)(ctx, x, tx)
						})
						if ctx.Err() != nil {
							gaveUp.Add(1)
							return
						}
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
			t.Logf("%d runs for %d keys, %d gave up, %d connections handed over", ran.Load(), keys, gaveUp.Load(), c.n.Load())
			if c.n.Load() == 0 {
				t.Error("no connection was handed over: this test shows nothing")
			}
		})
	}
}
