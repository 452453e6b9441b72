package pgstore

import (
	"context"
	"errors"
	"net/url"
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
	"github.com/semel-go/semel/store/pgstore/pgtest"
)

// handed counts the batches that commit one transaction and begin another.
type handed struct{ n atomic.Int32 }

func (h *handed) TraceQueryStart(ctx context.Context, _ *pgx.Conn, _ pgx.TraceQueryStartData) context.Context {
	return ctx
}
func (h *handed) TraceQueryEnd(context.Context, *pgx.Conn, pgx.TraceQueryEndData)     {}
func (h *handed) TraceBatchQuery(context.Context, *pgx.Conn, pgx.TraceBatchQueryData) {}
func (h *handed) TraceBatchEnd(context.Context, *pgx.Conn, pgx.TraceBatchEndData)     {}
func (h *handed) TraceBatchStart(ctx context.Context, _ *pgx.Conn, d pgx.TraceBatchStartData) context.Context {
	for i, q := range d.Batch.QueuedQueries {
		if q.SQL == beginSQL && i > 0 && d.Batch.QueuedQueries[i-1].SQL == "COMMIT" {
			h.n.Add(1)
		}
	}
	return ctx
}

// crowded is a shop whose pool has so few connections that runs wait for them.
type crowded struct {
	*shop
	handed
	app *pgxpool.Pool
}

func newCrowded(t *testing.T, url string, conns int32, set func(*pgxpool.Config)) *crowded {
	t.Helper()
	cfg, err := pgxpool.ParseConfig(url)
	if err != nil {
		t.Fatal(err)
	}
	c := &crowded{}
	cfg.MaxConns, cfg.ConnConfig.Tracer = conns, &c.handed
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
	t.Cleanup(func() { c.allBack(t) })
	return c
}

// allBack: no run has a connection, or a place.
func (c *crowded) allBack(t *testing.T) {
	t.Helper()
	waitFor(t, "all connections are back, and all places", func() bool {
		c.s.relay.mu.Lock()
		defer c.s.relay.mu.Unlock()
		is := c.app.Stat()
		return is.AcquiredConns() == 0 && c.s.relay.room == int(is.MaxConns()) && len(c.s.relay.waits) == 0
	})
}

// waits is until so many runs wait.
func (c *crowded) waits(t *testing.T, n int) {
	t.Helper()
	waitFor(t, itoa(n)+" runs wait", func() bool {
		c.s.relay.mu.Lock()
		defer c.s.relay.mu.Unlock()
		return len(c.s.relay.waits) == n
	})
}

// started is a run whose handler has written its row, and goes on when told.
type started struct {
	tx   pgx.Tx
	ran  atomic.Bool
	goOn chan func() error
	got  string
	err  error
	done chan struct{}
}

func (c *crowded) start(ctx context.Context, key string) *started {
	r := &started{goOn: make(chan func() error, 1), done: make(chan struct{})}
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

func fine() error { return nil }

// holding is a run that has the only connection.
func (c *crowded) holding(t *testing.T, key string) *started {
	t.Helper()
	r := c.start(t.Context(), key)
	waitFor(t, "the first runs", r.ran.Load)
	return r
}

func (r *started) want(t *testing.T, key string) {
	t.Helper()
	r.goOn <- fine
	if <-r.done; r.err != nil || r.got != "receipt of "+key {
		t.Errorf("run of %s: %q, %v", key, r.got, r.err)
	}
}

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
	c := newCrowded(t, pgtest.URL(t), 1, nil)
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
}

func TestARunThatDoesNotCommitHandsNothingOver(t *testing.T) {
	for name, end := range map[string]func() error{
		"an error": func() error { return errors.New("declined") },
		"a panic":  func() error { panic("oops") },
		"an exit":  func() error { runtime.Goexit(); return nil },
	} {
		t.Run(name, func(t *testing.T) {
			c := newCrowded(t, pgtest.URL(t), 1, nil)
			first := c.holding(t, "a")
			second := c.start(t.Context(), "b")
			c.waits(t, 1)
			first.goOn <- end
			second.want(t, "b")
			if <-first.done; first.err == nil {
				t.Error("the first has no error")
			}
			c.want(t, "b")
		})
	}
}

func TestACommitThatFailsHandsNothingOver(t *testing.T) {
	c := newCrowded(t, pgtest.URL(t), 1, nil)
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
}

func TestAFailureIsKeptAndTheConnectionHandedOver(t *testing.T) {
	c := newCrowded(t, pgtest.URL(t), 1, nil)
	first := c.holding(t, "a")
	second := c.start(t.Context(), "b")
	c.waits(t, 1)
	first.goOn <- func() error { return &semel.Failure{Code: "declined", Message: "no funds"} }
	second.want(t, "b")
	<-first.done
	if f, ok := errors.AsType[*semel.Failure](first.err); !ok || f.Code != "declined" {
		t.Errorf("the first: %v", first.err)
	}
	c.want(t, "b")
	if c.n.Load() != 1 {
		t.Error("the connection was not handed over")
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

// holdUp is in line for the table that every look reads, behind the runs that
// have looked: from the end of the last on, each look waits on the server, until
// stop. Looks is until one does.
func (c *crowded) holdUp(t *testing.T) (looks, stop func()) {
	t.Helper()
	conn, err := pgx.Connect(t.Context(), pgtest.URL(t))
	if err != nil {
		t.Fatal(err)
	}
	pid := conn.PgConn().PID()
	table := pgx.Identifier{c.s.opt.Schema, "semel_meta"}.Sanitize()
	ctx, cancel := context.WithCancel(t.Context())
	done := make(chan struct{})
	go func() {
		defer close(done)
		_, _ = conn.Exec(ctx, "BEGIN; LOCK TABLE "+table)
		<-ctx.Done()
		_ = conn.Close(context.Background())
	}()
	stop = sync.OnceFunc(func() {
		cancel()
		<-done
	})
	t.Cleanup(stop)
	wait := func(what, who string) {
		t.Helper()
		waitFor(t, what, func() bool {
			return ask[bool](t, c.s.own, "SELECT EXISTS (SELECT FROM pg_locks WHERE NOT granted AND relation = to_regclass($1) AND pid "+who+" $2)", table, pid)
		})
	}
	wait("the table is asked for", "=")
	return func() { t.Helper(); wait("a look is held up", "<>") }, stop
}

func TestWhoIsBegunForMayGiveUp(t *testing.T) {
	c := newCrowded(t, pgtest.URL(t), 1, nil)
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
}

// What befalls the look of the next is not the business of who has committed.
func TestALookThatFailsFailsNotTheCommitBeforeIt(t *testing.T) {
	for _, name := range []string{"refused", "cut"} {
		t.Run(name, func(t *testing.T) {
			c := newCrowded(t, pgtest.URL(t), 1, func(cfg *pgxpool.Config) {
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

func TestOthersGetAConnectionFromACrowd(t *testing.T) {
	c := newCrowded(t, pgtest.URL(t), 1, nil)
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
	waitFor(t, "connections are handed over", func() bool { return c.n.Load() > 3*relayed })
	for range 10 {
		before := ran.Load()
		in, done := context.WithTimeout(t.Context(), 20*time.Second)
		conn, err := c.app.Acquire(in)
		if done(); err != nil {
			t.Error("another who waits for a connection gets none:", err)
			break
		}
		if n := ran.Load() - before; n > relayed+10 {
			t.Errorf("another waited for a connection while %d runs had it", n)
		}
		conn.Release()
	}
	cancel()
	all.Wait()
}

func TestThePoolsHooksSeeEachConnection(t *testing.T) {
	var seen atomic.Int32
	c := newCrowded(t, pgtest.URL(t), 2, func(cfg *pgxpool.Config) {
		cfg.PrepareConn = func(context.Context, *pgx.Conn) (bool, error) {
			seen.Add(1)
			return true, nil
		}
	})
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
	if seen.Load() < 50 || c.n.Load() != 0 {
		t.Errorf("the hook saw %d of 50 runs, %d got their connection past it", seen.Load(), c.n.Load())
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
	for name, at := range map[string]func(*testing.T) string{
		"directly":          func(t *testing.T) string { return pgtest.URL(t) },
		"through PgBouncer": func(t *testing.T) string { return pgtest.Bouncer(t, pgtest.URL(t)) },
		"by simple queries": func(t *testing.T) string {
			u, err := url.Parse(pgtest.URL(t))
			if err != nil {
				t.Fatal(err)
			}
			q := u.Query()
			q.Set("default_query_exec_mode", "simple_protocol")
			u.RawQuery = q.Encode()
			return u.String()
		},
	} {
		t.Run(name, func(t *testing.T) {
			c := newCrowded(t, at(t), 3, nil)
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
