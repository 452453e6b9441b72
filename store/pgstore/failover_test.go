package pgstore

import (
	"context"
	"crypto/rand"
	"errors"
	"io"
	"net"
	"net/url"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"

	"github.com/semel-go/semel"
	"github.com/semel-go/semel/store"
	"github.com/semel-go/semel/store/pgstore/internal/cuttest"
	"github.com/semel-go/semel/store/pgstore/internal/handlertx"
	"github.com/semel-go/semel/store/pgstore/pgtest"
)

// With a synchronous standby nothing that was confirmed is lost when it takes
// over, and the fences go on growing.
func TestFailover_SynchronousStandby_HasConfirmedRecords(t *testing.T) {
	primary := pgtest.Start(t, append([]string{"wal_level=replica", "max_wal_senders=4"}, pgtest.Durable...)...)
	before := openAt(t, primary.URL(), nil)
	standby, err := primary.Standby()
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := standby.Remove(); err != nil {
			t.Error(err)
		}
	})
	if has, err := RequiresSynchronousStandby(t.Context(), before); has || err != nil {
		t.Errorf("before it is set, the standby is synchronous: %v, %v", has, err)
	}
	mustExec(t, before.ownPool, "ALTER SYSTEM SET synchronous_standby_names = '*'")
	mustExec(t, before.ownPool, "SELECT pg_reload_conf()")
	waitFor(t, "the standby is synchronous", func() bool {
		return ask[int](t, before.ownPool, "SELECT count(*) FROM pg_stat_replication WHERE sync_state = 'sync'") == 1
	})
	if has, err := RequiresSynchronousStandby(t.Context(), before); !has || err != nil {
		t.Errorf("the standby is synchronous: %v, %v", has, err)
	}
	replica, err := Open(t.Context(), standby.URL(), &Options{NoMigrate: true})
	if err != nil {
		t.Fatal(err)
	}
	if err := replica.Check(t.Context()); !errors.Is(err, ErrUnsafe) || !strings.Contains(err.Error(), "replica") {
		t.Errorf("Check of a replica: %v", err)
	}
	if f, err := replica.Claim(t.Context(), proposal("x")); err == nil || f.Won {
		t.Errorf("a claim on a replica: won %v, error %v", f.Won, err)
	}
	_ = replica.Close()
	var records []store.Record
	for i := range 50 {
		records = append(records, complete(t, before, itoa(i), "result "+itoa(i)))
	}
	running := claim(t, before, "running")
	primary.Kill()
	if err := standby.Promote(); err != nil {
		t.Fatal(err)
	}
	s := openAt(t, standby.URL(), nil)
	for _, r := range records {
		if is := get(t, s, r.Key.Value); is.Fence != r.Fence || !is.Outcome.Equal(r.Outcome) {
			t.Errorf("after the failover %q is %+v", r.Key.Value, is)
		}
	}
	if err := s.Settle(t.Context(), running.Lease(), completion("late")); err != nil {
		t.Errorf("a claim of before the failover cannot settle: %v", err)
	}
	f, err := s.Swap(t.Context(), records[0].Seen(), proposal("0"))
	if err != nil || !f.Won || f.Record.Fence <= records[0].Fence {
		t.Errorf("the next claim: won %v, fence %d after %d, error %v", f.Won, f.Record.Fence, records[0].Fence, err)
	}
}

// A server without room on its disk refuses, and changes nothing; recorded
// outcomes are still replayed.
func TestFullDisk_NewKeysRefused_ReplaysSucceed(t *testing.T) {
	t.Parallel()
	dir, free := smallDisk(t)
	srv := pgtest.Start(t, pgtest.Fast...)
	s := openAt(t, srv.URL(), nil)
	done := complete(t, s, "done", "result")
	mustExec(t, s.ownPool, "CREATE TABLESPACE small LOCATION '"+dir+"'")
	mustExec(t, s.ownPool, "ALTER TABLE semel.semel_record SET TABLESPACE small")
	claimed := claim(t, s, "claimed")
	var full error
	for i := 0; full == nil && i < 2000; i++ {
		p := proposal(itoa(i))
		random := make([]byte, 7000) // which cannot be compressed
		_, _ = rand.Read(random)
		p.Holder = string(random)
		_, full = s.Claim(t.Context(), p)
		if full != nil {
			if !errors.Is(full, ErrFull) {
				t.Fatalf("got %v, want ErrFull", full)
			}
			if _, err := s.Get(t.Context(), p.Key); !errors.Is(err, store.ErrNotFound) {
				t.Errorf("a claim that was refused: %v", err)
			}
		}
	}
	if full == nil {
		t.Fatal("the disk does not get full")
	}
	if f, err := s.Claim(t.Context(), proposal("done")); err != nil || f.Won || !f.Record.Outcome.Equal(done.Outcome) {
		t.Errorf("a duplicate on a full disk: won %v, error %v", f.Won, err)
	}
	free()
	if err := s.Settle(t.Context(), claimed.Lease(), completion("result")); err != nil {
		t.Errorf("with room again: %v", err)
	}
	if f, err := s.Claim(t.Context(), proposal("new")); err != nil || !f.Won {
		t.Errorf("with room again: %v", err)
	}
}

// address moves from one server to another, as a virtual IP address does.
type address struct {
	mu   sync.Mutex
	to   string
	open []net.Conn
}

func newAddress(t *testing.T, at string) (*address, string) {
	t.Helper()
	u, err := url.Parse(at)
	if err != nil {
		t.Fatal(err)
	}
	a := &address{to: u.Host}
	l, err := (&net.ListenConfig{}).Listen(t.Context(), "tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		_ = l.Close()
		a.move("")
	})
	go func() {
		for {
			client, err := l.Accept()
			if err != nil {
				return
			}
			a.carry(client)
		}
	}()
	u.Host, u.RawQuery = l.Addr().String(), "sslmode=disable"
	return a, u.String()
}

func (a *address) carry(client net.Conn) {
	a.mu.Lock()
	defer a.mu.Unlock()
	server, err := (&net.Dialer{}).DialContext(context.Background(), "tcp", a.to)
	if err != nil {
		_ = client.Close()
		return
	}
	a.open = append(a.open, client, server)
	go func() { _, _ = io.Copy(server, client); _ = server.Close() }()
	go func() { _, _ = io.Copy(client, server); _ = client.Close() }()
}

// move closes all connections, and lets later ones go to another server.
func (a *address) move(to string) {
	a.mu.Lock()
	defer a.mu.Unlock()
	a.to = to
	for _, c := range a.open {
		_ = c.Close()
	}
	a.open = nil
}

// The answer to COMMIT is lost, and the address of the server leads to a standby that has
// the commit in its log, and has not replayed it. Nobody may conclude that nothing was
// committed.
func TestFailover_StandbyHasNotReplayedCommit_InDoubt(t *testing.T) {
	t.Parallel()
	primary := pgtest.Start(t, append([]string{"wal_level=replica", "max_wal_senders=4"}, pgtest.Durable...)...)
	admin := pool(t, primary.URL())
	server, err := primary.Standby()
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = server.Remove() })
	standby := pool(t, server.URL())
	u, err := url.Parse(server.URL())
	if err != nil {
		t.Fatal(err)
	}
	cut, through := cuttest.New(t, primary.URL(), true)
	virtual, at := newAddress(t, primary.URL())
	cfg, err := pgxpool.ParseConfig(at)
	if err != nil {
		t.Fatal(err)
	}
	s, err := open(t.Context(), cfg, pool(t, through), nil)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = s.Close() })
	p := newShop(t, s, nil)
	p.a.cleanupTimeout = 500 * time.Millisecond
	mustExec(t, admin, "ALTER SYSTEM SET synchronous_standby_names = '*'") // so that the standby has each commit in its log
	mustExec(t, admin, "SELECT pg_reload_conf()")
	waitFor(t, "the standby has the tables, and is synchronous", func() bool {
		return ask[bool](t, standby, "SELECT to_regclass('semel.payment') IS NOT NULL") && ask[int](t, admin, "SELECT count(*) FROM pg_stat_replication WHERE sync_state = 'sync'") == 1
	})
	mustExec(t, standby, "SELECT pg_wal_replay_pause()")
	waitFor(t, "replay is paused", func() bool { return ask[string](t, standby, "SELECT pg_get_wal_replay_pause_state()") == "paused" })
	_, err = Do(t.Context(), p.a, call("k"), func(ctx context.Context, x *semel.Execution, tx pgx.Tx) (string, error) {
		res, err := p.pay("k", nil)(ctx, x, tx)
		virtual.move(u.Host)
		cut.At("COMMIT")
		return res, err
	})
	if !errors.Is(err, semel.ErrUnavailable) || !errors.Is(err, semel.ErrInDoubt) {
		t.Errorf("the call: %v; want ErrUnavailable, in doubt", err)
	}
	byHandler := p.a.newOwnTx() // a handler has committed this transaction itself
	byHandler.isClosed = true
	byHandler.finished.Lend(handlertx.ID{XID: ask[string](t, admin, "INSERT INTO semel.payment VALUES ('by its handler') RETURNING pg_current_xact_id()::text")})
	answer := make(chan bool, 1)
	go func() { answer <- byHandler.mayHaveCommitted(t.Context()) }()
	waitFor(t, "the standby is asked", func() bool {
		return len(answer) > 0 || ask[int](t, standby, "SELECT count(*) FROM pg_stat_activity WHERE query LIKE '%pg_xact_status%' AND pid <> pg_backend_pid()") > 0
	})
	if len(answer) > 0 {
		t.Error("the standby's answer counts, although it has not replayed the commit")
	}
	mustExec(t, standby, "SELECT pg_wal_replay_resume()")
	if err := server.Promote(); err != nil {
		t.Fatal(err)
	}
	if !<-answer {
		t.Error("a transaction that was not replayed yet counts as rolled back")
	}
	if n := ask[int](t, standby, "SELECT count(*) FROM semel.payment"); n != 2 {
		t.Errorf("%d effects on the standby, want 2: this test shows nothing", n)
	}
}
