package redisstore

import (
	"context"
	"errors"
	"strings"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/semel-go/semel/store"
	"github.com/semel-go/semel/store/redisstore/redistest"
)

// age makes the last inspection of a server as old as it may be.
func age(s *Store) {
	in := s.inspections.single
	old := *in.lastPass.Load()
	old.time = old.time.Add(-recheckInterval)
	in.lastPass.Store(&old)
}

// configSet changes a setting of a server from another connection.
func configSet(t *testing.T, url, name, value string) {
	t.Helper()
	if err := clientAt(t, url).ConfigSet(t.Context(), name, value).Err(); err != nil {
		t.Fatal(err)
	}
}

// wantUnsafe fails unless claims and swaps are refused because of a setting, and
// nothing else is.
func wantUnsafe(t *testing.T, s *Store, held store.Record, setting string) {
	t.Helper()
	for range 2 { // as long as it is so
		f, err := s.Claim(t.Context(), proposal("new"))
		if !errors.Is(err, ErrUnsafe) || f.Won || !strings.Contains(err.Error(), setting) {
			t.Errorf("Claim: won %v, error %v; want ErrUnsafe because of %q", f.Won, err, setting)
		}
		if f, err = s.Claim(t.Context(), proposal("held")); !errors.Is(err, ErrUnsafe) || f.Won || f.Record.Owner != held.Owner {
			t.Errorf("Claim of a key that has a record: won %v, %+v, error %v; want ErrUnsafe with the record", f.Won, f.Record, err)
		}
		f, err = s.Swap(t.Context(), held.Seen(), proposal("held"))
		if !errors.Is(err, ErrUnsafe) || f.Won {
			t.Errorf("Swap: won %v, error %v", f.Won, err)
		}
	}
	if errs, err := s.Renew(t.Context(), []store.Lease{held.Lease()}, time.Minute); err != nil || errs[0] != nil {
		t.Errorf("a renewal: %v, %v", errs, err)
	}
	if err := s.Settle(t.Context(), held.Lease(), completion("x")); err != nil {
		t.Errorf("a settlement: %v", err)
	}
}

func TestClaim_ServerBeginsToEvict_IsRefused(t *testing.T) {
	t.Parallel()
	srv := redistest.Start(t, redistest.Fast...)
	s := openOn(t, clientAt(t, srv.URL()), nil)
	held := claim(t, s, "held")
	configSet(t, srv.URL(), "maxmemory-policy", "allkeys-lru")
	claim(t, s, "k") // the settings are young enough
	age(s)
	wantUnsafe(t, s, held, "maxmemory-policy is allkeys-lru")
	configSet(t, srv.URL(), "maxmemory-policy", "noeviction")
	claim(t, s, "again")
}

// A server that keeps less than when the store was opened is refused, and one that
// kept little from the beginning is not.
func TestClaim_ServerBecomesLessDurable_IsRefused(t *testing.T) {
	t.Parallel()
	srv := redistest.Start(t, redistest.Durable...)
	s := openOn(t, clientAt(t, srv.URL()), nil)
	held := claim(t, s, "held")
	configSet(t, srv.URL(), "appendfsync", "everysec")
	age(s)
	wantUnsafe(t, s, held, "appendfsync everysec: appendfsync always held when the store was opened")
	late := openOn(t, clientAt(t, srv.URL()), &Options{Prefix: newPrefix()})
	claim(t, late, "k")
	configSet(t, srv.URL(), "appendfsync", "always")
	claim(t, s, "again")
	age(late)
	claim(t, late, "better")
	configSet(t, srv.URL(), "appendonly", "no")
	age(late)
	if f, err := late.Claim(t.Context(), proposal("worse")); !errors.Is(err, ErrUnsafe) || f.Won || !strings.Contains(err.Error(), "appendonly no") {
		t.Errorf("won %v, error %v", f.Won, err)
	}
}

// After each new connection the settings are read again, even if the connection was
// made for the very claim: it may lead to another server.
func TestClaim_OverNewConnection_InspectsServer(t *testing.T) {
	t.Parallel()
	srv := redistest.Start(t, redistest.Fast...)
	s := openOn(t, clientAt(t, srv.URL()), nil)
	held := claim(t, s, "held")
	configSet(t, srv.URL(), "maxmemory-policy", "volatile-lru")
	if err := clientAt(t, srv.URL()).ClientKillByFilter(t.Context(), "TYPE", "normal", "SKIPME", "yes").Err(); err != nil {
		t.Fatal(err)
	}
	f, err := persisted(t, func() (store.Found, error) {
		f, err := s.Claim(t.Context(), proposal("k"))
		if errors.Is(err, ErrUnsafe) {
			return f, store.ErrNotFound // an answer: it ends the wait
		}
		return f, err
	})
	if !errors.Is(err, store.ErrNotFound) || f.Won {
		t.Errorf("the first claim after it: won %v, error %v", f.Won, err)
	}
	wantUnsafe(t, s, held, "volatile-lru")
}

// A Sentinel promotes a replica that evicts: no claim is granted there.
func TestFailOver_ReplicaEvicts_NoClaimIsGranted(t *testing.T) {
	t.Parallel()
	f := redistest.StartFailover(t, redistest.Fast...)
	s := openFailover(t, f, nil)
	claim(t, s, "before")
	configSet(t, f.Replica.URL(), "maxmemory-policy", "allkeys-lru")
	f.Master.Kill()
	if err := f.Promoted(); err != nil {
		t.Fatal(err)
	}
	waitFor(t, "a claim is refused", func() bool {
		ctx, cancel := context.WithTimeout(t.Context(), 5*time.Second)
		defer cancel()
		f, err := s.Claim(ctx, proposal("after"))
		if err == nil && f.Won {
			t.Fatal("a claim is granted on a server that evicts")
		}
		return errors.Is(err, ErrUnsafe) && strings.Contains(err.Error(), "allkeys-lru")
	})
	configSet(t, f.Replica.URL(), "maxmemory-policy", "noeviction")
	claim(t, s, "again")
}

// A cluster is as durable as its weakest node was. A node that cannot be reached
// is inspected by its first claim.
func TestCompare_WeakestServerWhenOpened_Decides(t *testing.T) {
	all := &nodeInspections{}
	for _, fsync := range []string{"always", "everysec", "always"} {
		set := sound()
		if set.fsync = fsync; all.compare(set) != nil {
			t.Errorf("a finding while the store is opened")
		}
	}
	all.allPassedOnce.Store(true)
	for name, c := range map[string]struct {
		log, fsync string
		refused    bool
	}{
		"as strong":                    {"1", "everysec", false},
		"stronger":                     {"1", "always", false},
		"weaker":                       {"1", "no", true},
		"without a log":                {"0", "always", true},
		"not known":                    {"1", "", false},
		"not known, and without a log": {"0", "", true},
	} {
		set := sound()
		set.fsync, set.info["aof_enabled"] = c.fsync, c.log
		if fs := all.compare(set); (fs != nil) != c.refused {
			t.Errorf("%s: %v", name, fs)
		}
	}
}

// Many stores on one client cost its commands nothing.
func TestDialHook_Commands_AreNotWrapped(t *testing.T) {
	h := dialHook{&inspection{}}
	process := redis.ProcessHook(func(context.Context, redis.Cmder) error { return nil })
	if got := h.ProcessHook(process); got == nil || testing.AllocsPerRun(10, func() { _ = got(t.Context(), nil) }) != 0 {
		t.Error("the hook wraps commands")
	}
}
