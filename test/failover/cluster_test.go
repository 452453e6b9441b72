package failover

import (
	"context"
	"errors"
	"fmt"
	"os"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"

	"github.com/semel-go/semel/internal/proctest"
	"github.com/semel-go/semel/store/pgstore/pgtest"
)

func TestMain(m *testing.M) { os.Exit(pgtest.Main(m)) }

// limit is how long a step of a test may take on a busy machine.
const limit = 2 * time.Minute

// cluster is a primary with a synchronous standby, and the links of both.
type cluster struct {
	primary, standby *pgtest.Server
	clients          *link // of the application, to the primary
	replication      *link // of the standby, to the primary
}

func newCluster(t *testing.T) *cluster {
	t.Helper()
	c := &cluster{primary: pgtest.Start(t, "wal_level=replica", "max_wal_senders=4", "wal_retrieve_retry_interval=50ms", "fsync=off", "synchronous_commit=on")}
	c.clients, c.replication = newLink(t, ""), newLink(t, "")
	return c
}

func address(s *pgtest.Server) string { return fmt.Sprintf("127.0.0.1:%d", s.Port()) }

// url is the address of the primary for the application.
func (c *cluster) url() string {
	return fmt.Sprintf("postgres://postgres@127.0.0.1:%d/postgres?sslmode=disable&connect_timeout=5", c.clients.port())
}

// addStandby adds a standby, and returns after commits wait for it.
func (c *cluster) addStandby(t *testing.T) {
	t.Helper()
	var err error
	if c.standby, err = c.primary.Standby(); err != nil {
		t.Fatal(err)
	}
	c.replication.connect("")
	exec(t, c.standby, fmt.Sprintf("ALTER SYSTEM SET primary_conninfo = 'host=127.0.0.1 port=%d user=postgres application_name=linked'", c.replication.port()))
	exec(t, c.standby, "SELECT pg_reload_conf()")
	exec(t, c.primary, "ALTER SYSTEM SET synchronous_standby_names = 'linked'")
	exec(t, c.primary, "SELECT pg_reload_conf()")
	wait(t, "commits wait for the standby", func() bool { // each process of the server reads the setting when it has time
		waits := false
		on(t, c.primary, func(ctx context.Context, conn *pgx.Conn) error {
			ctx, cancel := context.WithTimeout(ctx, 200*time.Millisecond)
			defer cancel()
			_, err := conn.Exec(ctx, "SELECT pg_logical_emit_message(true, 'test', '')")
			waits = err != nil
			return nil
		})
		return waits
	})
	c.replication.connect(address(c.primary))
	wait(t, "the standby is synchronous", func() bool {
		return ask[int](t, c.primary, "SELECT count(*) FROM pg_stat_replication WHERE application_name = 'linked' AND sync_state = 'sync'") == 1
	})
	c.clients.connect(address(c.primary))
}

// failOver kills the primary, and promotes the standby, which has no standby itself.
func (c *cluster) failOver(t *testing.T) {
	t.Helper()
	c.primary.Kill()
	c.clients.connect("")
	if err := c.standby.Promote(); err != nil {
		t.Fatal(err)
	}
	exec(t, c.standby, "ALTER SYSTEM RESET synchronous_standby_names")
	exec(t, c.standby, "SELECT pg_reload_conf()")
	wait(t, "the new primary has no standby", func() bool {
		return ask[string](t, c.standby, "SHOW synchronous_standby_names") == ""
	})
	if err := c.primary.Remove(); err != nil {
		t.Fatal(err)
	}
	c.primary, c.standby = c.standby, nil
	c.clients.connect(address(c.primary))
}

func exec(t *testing.T, s *pgtest.Server, sql string) {
	t.Helper()
	on(t, s, func(ctx context.Context, conn *pgx.Conn) error {
		_, err := conn.Exec(ctx, sql)
		return err
	})
}

// ask is the one value that a query returns.
func ask[T any](t *testing.T, s *pgtest.Server, sql string) (v T) {
	t.Helper()
	on(t, s, func(ctx context.Context, conn *pgx.Conn) error { return conn.QueryRow(ctx, sql).Scan(&v) })
	return v
}

// on runs f on a connection of its own, which no link cuts.
func on(t *testing.T, s *pgtest.Server, f func(ctx context.Context, conn *pgx.Conn) error) {
	t.Helper()
	ctx, cancel := context.WithTimeout(context.Background(), limit)
	defer cancel()
	conn, err := pgx.Connect(ctx, s.URL())
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = conn.Close(ctx) }()
	if err := f(ctx, conn); err != nil {
		t.Fatal(err)
	}
}

func wait(t *testing.T, what string, is func() bool) {
	t.Helper()
	if err := proctest.Until(limit, 5*time.Millisecond, func() error {
		if !is() {
			return errors.New("not yet")
		}
		return nil
	}); err != nil {
		t.Fatalf("%s: %v", what, err)
	}
}

func plainPool(t *testing.T, url string) *pgxpool.Pool {
	t.Helper()
	pool, err := pgxpool.New(t.Context(), url)
	if err != nil {
		t.Fatal(err)
	}
	return pool
}
