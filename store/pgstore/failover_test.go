package pgstore

import (
	"crypto/rand"
	"errors"
	"strings"
	"testing"

	"github.com/semel-go/semel/store"
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
	if has, err := before.RequiresSynchronousStandby(t.Context()); has || err != nil {
		t.Errorf("before it is set, the standby is synchronous: %v, %v", has, err)
	}
	mustExec(t, before.ownPool, "ALTER SYSTEM SET synchronous_standby_names = '*'")
	mustExec(t, before.ownPool, "SELECT pg_reload_conf()")
	waitFor(t, "the standby is synchronous", func() bool {
		return ask[int](t, before.ownPool, "SELECT count(*) FROM pg_stat_replication WHERE sync_state = 'sync'") == 1
	})
	if has, err := before.RequiresSynchronousStandby(t.Context()); !has || err != nil {
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
