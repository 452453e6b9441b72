package pgstore

import (
	"context"
	"errors"
	"slices"
	"sync"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgconn"
	"github.com/jackc/pgx/v5/pgxpool"

	"github.com/semel-go/semel"
	"github.com/semel-go/semel/store"
	"github.com/semel-go/semel/store/pgstore/internal/table"
	"github.com/semel-go/semel/store/pgstore/pgtest"
)

// standbyServer is a server whose commits wait for a standby that does not exist, until
// somebody cancels the wait.
type standbyServer struct {
	*pgtest.Server
	admin *pgxpool.Pool
}

func newStandbyServer(t *testing.T) *standbyServer {
	t.Helper()
	srv := pgtest.Start(t, "fsync=off", "synchronous_commit=on")
	return &standbyServer{srv, pool(t, srv.URL())}
}

// standby says whether commits wait. The checkpointer makes all commits wait, or none, and the
// postmaster tells it of the setting after all others.
func (s *standbyServer) standby(t *testing.T, names string) {
	t.Helper()
	mustExec(t, s.admin, "ALTER SYSTEM SET synchronous_standby_names = '"+names+"'")
	mustExec(t, s.admin, "SELECT pg_reload_conf()")
	waitFor(t, "the setting is in force", func() bool {
		return ask[string](t, s.admin, "SHOW synchronous_standby_names") == names && s.commitWaits(t) == (names != "")
	})
}

// commitWaits makes a commit, and reports whether it waits for the standby.
func (s *standbyServer) commitWaits(t *testing.T) bool {
	t.Helper()
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	committed := make(chan error, 1)
	go func() {
		_, err := s.admin.Exec(ctx, table.WriteBarrier)
		committed <- err
	}()
	for s.waiting(t) == 0 {
		select {
		case err := <-committed:
			if err != nil {
				t.Fatal(err)
			}
			return false
		case <-time.After(5 * time.Millisecond):
		}
	}
	cancel()
	<-committed
	waitFor(t, "the commit waits no longer", func() bool { return s.waiting(t) == 0 })
	return true
}

// waiting is how many commits wait for the standby.
func (s *standbyServer) waiting(t *testing.T) int {
	t.Helper()
	return ask[int](t, s.admin, "SELECT count(*) FROM pg_stat_activity WHERE wait_event = 'SyncRep'")
}

// cancelWaits cancels each wait for the standby, as an operator may do, until ctx ends.
func (s *standbyServer) cancelWaits(ctx context.Context) {
	for ctx.Err() == nil {
		_, _ = s.admin.Exec(ctx, "SELECT pg_cancel_backend(pid) FROM pg_stat_activity WHERE wait_event = 'SyncRep'")
		select {
		case <-time.After(10 * time.Millisecond):
		case <-ctx.Done():
		}
	}
}

// calls that take effect, or tell that one is done. Each is made several times.
func (p *shop) acknowledgements(t *testing.T, held, stepped, erased store.Record, done string) map[string]func(ctx context.Context) error {
	t.Helper()
	once := func(key string) func(context.Context) error {
		return func(ctx context.Context) error {
			_, err := Do(ctx, p.a, call(key), p.pay(key, nil))
			return err
		}
	}
	batch := func(keys ...string) func(context.Context) error {
		return func(ctx context.Context) error {
			for _, end := range p.a.RunBatch(ctx, poll(keys...), func(ctx context.Context, newCalls []*PendingCall) error {
				tx, _ := TxFrom(ctx)
				for _, n := range newCalls {
					if _, err := p.pay(keys[n.Index], nil)(ctx, n.Execution, tx); err != nil {
						return err
					}
				}
				return nil
			}) {
				if end.Err == nil {
					return nil
				}
			}
			return errors.New("no call of the batch is done")
		}
	}
	claimed, settled := proposal("claimed"), completion("settled")
	return map[string]func(ctx context.Context) error{
		"claim": func(ctx context.Context) error {
			f, err := p.s.Claim(ctx, claimed)
			if err == nil && !f.Won {
				t.Error("the claim does not find itself")
			}
			return err
		},
		"settle": func(ctx context.Context) error { return p.s.Settle(ctx, held.Lease(), settled) },
		"renew": func(ctx context.Context) error {
			held := held
			errs, err := p.s.Renew(ctx, []store.Lease{held.Lease()}, time.Minute)
			if err == nil && errors.Is(errs[0], store.ErrLeaseLost) { // it is settled
				return errors.New("nothing is renewed")
			}
			return errors.Join(append(errs, err)...)
		},
		"duplicate": func(ctx context.Context) error {
			_, err := p.s.Claim(ctx, proposal(done))
			return err
		},
		"get": func(ctx context.Context) error {
			_, err := p.s.Get(ctx, testKey(done))
			return err
		},
		"reserve": func(ctx context.Context) error {
			_, err := leased(t, p.s, nil).Reserve(ctx, call("reserved"))
			return err
		},
		"steps": func(ctx context.Context) error {
			steps, err := p.s.Steps(ctx, stepped.Lease())
			if err == nil && len(steps) != 1 {
				t.Errorf("%d steps are recorded", len(steps))
			}
			return err
		},
		"Do, duplicate without its result": func(ctx context.Context) error {
			if _, err := p.a.Run(ctx, call("too large"), tooLarge); !errors.Is(err, semel.ErrNotKept) {
				return err
			}
			return nil // the work is done
		},
		"erase": func(ctx context.Context) error {
			if err := p.s.Erase(ctx, erased.Seen()); !errors.Is(err, store.ErrNotFound) {
				return err
			}
			return nil // an earlier sending has erased it
		},
		"Do": once("once"), "Do, duplicate": once("done before"), "batch": batch("b1", "b2"), "batch of duplicates": batch("done before", "done before, too"),
		"In": func(ctx context.Context) error {
			tx, err := p.s.appPool.Begin(ctx)
			if err != nil {
				return err
			}
			defer func() { _ = tx.Rollback(context.Background()) }()
			_, err = semel.Do(ctx, p.a.In(tx), call("done before"), func(context.Context, *semel.Execution) (string, error) { return "", nil })
			return err
		},
	}
}

// While commits wait for a standby, no call is done: not if its deadline ends the wait,
// not if an operator does, and not if it is made again, although its record is visible.
// When the standby is there again, each is done, and no handler has run twice.
func TestStandbyAway_WaitCancelled_NothingAcknowledged(t *testing.T) {
	srv := newStandbyServer(t)
	lent := func(before func(context.Context, *pgx.ConnConfig) error) *Store {
		cfg := pool(t, srv.URL()).Config()
		cfg.BeforeConnect = before
		app, err := pgxpool.NewWithConfig(t.Context(), cfg)
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(app.Close)
		s, err := New(t.Context(), app, &Options{Schema: "lent"})
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { _ = s.Close() })
		return s
	}
	for name, open := range map[string]func() *Store{
		"Open":                  func() *Store { return openAt(t, srv.URL(), &Options{Schema: "opened"}) },
		"Open without warnings": func() *Store { return openAt(t, srv.URL()+"&client_min_messages=error", &Options{Schema: "opened"}) },
		"New":                   func() *Store { return lent(nil) },
		"New with a hook of notices": func() *Store {
			return lent(func(_ context.Context, c *pgx.ConnConfig) error {
				c.OnNotice = func(*pgconn.PgConn, *pgconn.Notice) {}
				return nil
			})
		},
	} {
		for _, operator := range []bool{false, true} {
			t.Run(name, func(t *testing.T) {
				srv.standby(t, "")
				mustExec(t, srv.admin, "DROP SCHEMA IF EXISTS opened, lent CASCADE")
				p := newShop(t, open(), &semel.Options{MaxOutcome: 1000})
				p.a.cleanupTimeout = 200 * time.Millisecond
				held, stepped := claim(t, p.s, "held"), claim(t, p.s, "stepped")
				if err := p.s.RecordStep(t.Context(), stepped.Lease(), store.Step{Name: "pay"}); err != nil {
					t.Fatal(err)
				}
				complete(t, p.s, "done", "result")
				complete(t, p.s, "erased", "result")
				if _, err := p.a.Run(t.Context(), call("too large"), tooLarge); err != nil {
					t.Fatal(err)
				}
				for _, key := range []string{"done before", "done before, too"} {
					if _, err := Do(t.Context(), p.a, call(key), p.pay(key, nil)); err != nil {
						t.Fatal(err)
					}
				}
				calls := p.acknowledgements(t, held, stepped, get(t, p.s, "erased"), "done")
				srv.standby(t, "nobody")
				cancels, stop := context.WithCancel(t.Context())
				defer stop()
				if operator {
					go srv.cancelWaits(cancels)
				}
				for range 2 {
					var all sync.WaitGroup
					for what, fn := range calls {
						all.Go(func() {
							ctx, cancel := context.WithTimeout(t.Context(), 300*time.Millisecond)
							defer cancel()
							if err := fn(ctx); err == nil {
								t.Errorf("%s is done without the standby", what)
							}
						})
					}
					all.Wait()
				}
				stop()
				srv.standby(t, "")
				for what, fn := range calls {
					if err := fn(t.Context()); err != nil && what != "renew" {
						t.Errorf("%s with the standby: %v", what, err)
					}
				}
				want := []string{"b1", "b2", "done before", "done before, too", "once"}
				if got := p.payments(t); !slices.Equal(got, want) {
					t.Errorf("the effects are %q, want %q", got, want)
				}
			})
		}
	}
}

// COMMIT waits for a standby that is away. The calls are in doubt, also if the handler has
// used the connection, which it may. No record is parked: made again, the calls get their
// results.
func TestRunBatch_StandbyAwayAtCommit_SameCallGetsResult(t *testing.T) {
	t.Parallel()
	srv := newStandbyServer(t)
	p := newShop(t, openAt(t, srv.URL(), nil), &semel.Options{StoreTimeout: 3 * time.Second})
	keys := []string{"a", "b", "c"}
	run := func(lose func()) []BatchResult {
		return p.a.RunBatch(t.Context(), poll(keys...), func(ctx context.Context, newCalls []*PendingCall) error {
			tx, _ := TxFrom(ctx)
			_ = tx.Conn().TypeMap()
			for _, n := range newCalls {
				if _, err := p.pay(keys[n.Index], nil)(ctx, n.Execution, tx); err != nil {
					return err
				}
			}
			lose()
			return nil
		})
	}
	for i, e := range run(func() { srv.standby(t, "nobody") }) {
		if !errors.Is(e.Err, semel.ErrUnavailable) || !errors.Is(e.Err, semel.ErrInDoubt) {
			t.Errorf("%s: %v; want ErrUnavailable, in doubt", keys[i], e.Err)
		}
	}
	srv.standby(t, "")
	for i, e := range run(func() {}) {
		if e.Err != nil {
			t.Errorf("%s with the standby: %v", keys[i], e.Err)
		}
	}
	p.want(t, keys...)
}
