package pgstore

import (
	"bytes"
	"context"
	"errors"
	"net"
	"sync"
	"sync/atomic"
	"testing"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"

	"github.com/semel-go/semel"
	"github.com/semel-go/semel/store/pgstore/pgtest"
)

// handed counts the batches that commit one transaction and begin another.
type handed struct {
	n      atomic.Int32
	panics atomic.Bool // at the next
}

func (h *handed) TraceQueryStart(ctx context.Context, _ *pgx.Conn, _ pgx.TraceQueryStartData) context.Context {
	return ctx
}
func (h *handed) TraceQueryEnd(context.Context, *pgx.Conn, pgx.TraceQueryEndData)     {}
func (h *handed) TraceBatchQuery(context.Context, *pgx.Conn, pgx.TraceBatchQueryData) {}
func (h *handed) TraceBatchEnd(context.Context, *pgx.Conn, pgx.TraceBatchEndData)     {}
func (h *handed) TraceBatchStart(ctx context.Context, _ *pgx.Conn, d pgx.TraceBatchStartData) context.Context {
	for i, q := range d.Batch.QueuedQueries {
		if q.SQL == beginSQL && i > 0 && d.Batch.QueuedQueries[i-1].SQL == "COMMIT" {
			if h.n.Add(1); h.panics.Swap(false) {
				panic("a tracer's")
			}
		}
	}
	return ctx
}

// wire counts them where no tracer is.
type wire struct {
	net.Conn
	n *atomic.Int32
}

func (w wire) Write(b []byte) (int, error) {
	name := func(sql string) []byte { return []byte("\x00" + preparedName(sql) + "\x00") }
	if _, behind, is := bytes.Cut(b, name(commitSQL)); is && bytes.Contains(behind, name(beginSQL)) {
		w.n.Add(1)
	}
	return w.Conn.Write(b)
}

// crowded is a shop whose pool has so few connections that runs wait for them.
type crowded struct {
	*shop
	handed
	app    *pgxpool.Pool
	others int // runs of end that have nothing to do with its key
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

// crowds are by the way that their statements go.
var crowds = map[string]func(t *testing.T, url string, conns int32, set func(*pgxpool.Config)) *crowded{
	"by pgx": newCrowded, "directly": newDirectCrowd,
}

// newDirectCrowd is one whose statements go directly, on all connections.
func newDirectCrowd(t *testing.T, url string, conns int32, set func(*pgxpool.Config)) *crowded {
	t.Helper()
	var n *atomic.Int32
	c := newCrowded(t, url, conns, func(cfg *pgxpool.Config) {
		if set != nil {
			set(cfg)
		}
		n = &cfg.ConnConfig.Tracer.(*handed).n
		cfg.ConnConfig.Tracer = nil
		dial := cfg.ConnConfig.DialFunc
		cfg.ConnConfig.DialFunc = func(ctx context.Context, network, addr string) (net.Conn, error) {
			conn, err := dial(ctx, network, addr)
			return wire{conn, n}, err
		}
	})
	for round := range 2 { // the second prepares
		var all []*started
		for i := range int(conns) {
			r := c.start(t.Context(), "warm "+itoa(round)+" "+itoa(i))
			waitFor(t, "it runs", func() bool { return r.ran.Load() })
			all = append(all, r)
		}
		for _, r := range all {
			r.goOn <- fine
			<-r.done
		}
	}
	for _, conn := range c.app.AcquireAllIdle(t.Context()) {
		if d := directOf(conn.Conn()); d.off || len(d.are) == 0 {
			t.Error("a connection has nothing prepared")
		}
		conn.Release()
	}
	mustExec(t, c.app, "DELETE FROM "+c.table)
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
