package pgstore

import (
	"bytes"
	"context"
	"fmt"
	"net"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"

	"github.com/semel-go/semel/store/pgstore/pgtest"
)

// meter says what operations cost besides time, on a server of its own.
type meter struct {
	srv   *pgtest.Server
	conn  *pgx.Conn
	trips atomic.Int64 // of all connections that count
}

// newMeter starts a server that keeps what it confirms, as one is that has run
// for a while: it writes over old segments of its log, instead of making new.
func newMeter(t testing.TB, settings ...string) *meter {
	t.Helper()
	m := &meter{srv: pgtest.Start(t, slices.Concat([]string{"shared_buffers=512MB", "max_wal_size=6GB", "min_wal_size=1GB"}, pgtest.Durable, settings)...)}
	var err error
	if m.conn, err = pgx.Connect(t.Context(), m.srv.URL()); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = m.conn.Close(context.Background()) })
	for _, name := range []string{"fsync", "synchronous_commit"} {
		if is := ask[string](t, m.conn, "SELECT current_setting($1)", name); is != "on" {
			t.Fatalf("%s is %s", name, is)
		}
	}
	for range 2 {
		mustExec(t, m.conn, "CREATE TABLE old AS SELECT i, repeat('x', 400) FROM generate_series(1, 1000000) i")
		mustExec(t, m.conn, "DROP TABLE old")
		mustExec(t, m.conn, "CHECKPOINT")
	}
	return m
}

// pool is a pool of the application's whose round trips count.
func (m *meter) pool(t testing.TB, conns int32) *pgxpool.Pool {
	t.Helper()
	cfg, err := pgxpool.ParseConfig(m.srv.URL())
	if err != nil {
		t.Fatal(err)
	}
	cfg.MaxConns = conns
	dial := cfg.ConnConfig.DialFunc
	cfg.ConnConfig.DialFunc = func(ctx context.Context, network, addr string) (net.Conn, error) {
		c, err := dial(ctx, network, addr)
		return &counted{Conn: c, trips: &m.trips}, err
	}
	pool, err := pgxpool.NewWithConfig(t.Context(), cfg)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(pool.Close)
	return pool
}

// open opens a store whose round trips count; its application has a pool of 24.
func (m *meter) open(t testing.TB, o *Options) *Store {
	t.Helper()
	s, err := New(t.Context(), m.pool(t, 24), o)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = s.Close() })
	return s
}

// counted counts each time that something was written and then read.
type counted struct {
	net.Conn
	trips *atomic.Int64
	wrote atomic.Bool
}

func (c *counted) Write(b []byte) (int, error) {
	c.wrote.Store(true)
	return c.Conn.Write(b)
}

func (c *counted) Read(b []byte) (int, error) {
	if c.wrote.CompareAndSwap(true, false) {
		c.trips.Add(1)
	}
	return c.Conn.Read(b)
}

// cost is what some operations took.
type cost struct {
	ops            int
	took           time.Duration
	p50, p99       time.Duration // 0: not known
	trips, wal     float64       // for each
	client, server time.Duration // processor time, on Linux only
}

func (c *cost) rate() float64 { return float64(c.ops) / c.took.Seconds() }

func (c *cost) String() string {
	us := func(d time.Duration) string { return fmt.Sprintf("%.1f", float64(d)/float64(time.Microsecond)) }
	return fmt.Sprintf("%8.0f/s  p50 %8v  p99 %8v  %5.2f trips  %5.0f B of WAL  CPU %6s + %6s us", c.rate(),
		c.p50.Round(time.Microsecond), c.p99.Round(time.Microsecond), c.trips, c.wal, us(c.client), us(c.server))
}

// measure runs fn, which reports how long each operation took.
func (m *meter) measure(t testing.TB, fn func() (ops int, took []time.Duration)) *cost {
	t.Helper()
	const lsn = "SELECT pg_wal_lsn_diff(pg_current_wal_insert_lsn(), '0/0')::bigint"
	wal, trips := ask[int64](t, m.conn, lsn), m.trips.Load()
	client, server := busyTime(os.Getpid(), false), m.serverTime(t)
	start := time.Now()
	ops, took := fn()
	c := &cost{ops: max(1, ops), took: time.Since(start)}
	c.client = (busyTime(os.Getpid(), false) - client) / time.Duration(c.ops)
	c.server = (m.serverTime(t) - server) / time.Duration(c.ops)
	c.trips = float64(m.trips.Load()-trips) / float64(c.ops)
	c.wal = float64(ask[int64](t, m.conn, lsn)-wal) / float64(c.ops)
	if slices.Sort(took); len(took) > 0 {
		c.p50, c.p99 = took[len(took)/2], took[len(took)*99/100]
	}
	return c
}

// serverTime is the processor time of the server and its backends, those that
// have ended too.
func (m *meter) serverTime(t testing.TB) time.Duration {
	t.Helper()
	b, err := os.ReadFile(filepath.Join(m.srv.DataDir(), "postmaster.pid"))
	if err != nil {
		t.Fatal(err)
	}
	line, _, _ := bytes.Cut(b, []byte("\n"))
	pid, err := strconv.Atoi(string(line))
	if err != nil {
		t.Fatal(err)
	}
	return busyTime(pid, true)
}

// busyTime is the processor time of a process, and of its children if
// family, in ticks of 10 ms; 0 where there is no /proc.
func busyTime(pid int, family bool) (sum time.Duration) {
	paths := []string{fmt.Sprintf("/proc/%d/stat", pid)}
	if family {
		paths, _ = filepath.Glob("/proc/[0-9]*/stat")
	}
	for _, path := range paths {
		b, err := os.ReadFile(path)
		if err != nil {
			continue // it has ended
		}
		_, text, _ := strings.Cut(string(b), ") ") // after the name
		f := strings.Fields(text)
		if len(f) < 15 {
			continue
		}
		self := strings.HasPrefix(string(b), fmt.Sprint(pid, " "))
		if !self && f[1] != strconv.Itoa(pid) {
			continue
		}
		count := f[11:13] // in user mode, and in the kernel
		if self && family {
			count = f[11:15] // and of children that have ended
		}
		for _, ticks := range count {
			n, _ := strconv.Atoi(ticks)
			sum += time.Duration(n) * 10 * time.Millisecond
		}
	}
	return sum
}
