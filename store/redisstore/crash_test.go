package redisstore

import (
	"fmt"
	"sync"
	"sync/atomic"
	"testing"

	"github.com/redis/go-redis/v9"

	"github.com/semel-go/semel/store"
	"github.com/semel-go/semel/store/redisstore/redistest"
)

// crash kills the server n times while claims and settlements go on.
func crash(t *testing.T, srv *redistest.Server, s *Store, n, load int) *ledger {
	l := newLedger()
	for round := range n {
		var stop atomic.Bool
		var all sync.WaitGroup
		for g := range 32 {
			all.Go(func() { l.work(t, s, fmt.Sprint(round, "/", g), &stop) })
		}
		l.grow(t, load)
		srv.Kill()
		if err := srv.Start(); err != nil {
			t.Error(err)
		}
		l.grow(t, load/3) // the same handle goes on
		stop.Store(true)
		all.Wait()
		if t.Failed() {
			break
		}
	}
	return l
}

func TestServerCrash_ConfirmedWrites_Survive(t *testing.T) {
	t.Parallel()
	srv := redistest.Start(t, redistest.Durable...)
	c := redis.NewClient(&redis.Options{Addr: srv.Addr(), MaxRetries: -1}) // so that crashes are met
	t.Cleanup(func() { _ = c.Close() })
	s := openOn(t, c, nil)
	n, load := kills(), 150
	if long() {
		load = 600
	}
	l := crash(t, srv, s, n, load)
	lost := l.lost(t, openOn(t, clientAt(t, srv.URL()), nil))
	figure(t, "a confirmed claim or outcome survives kill -9 of the server, with appendfsync always", false, l.size(), lost,
		fmt.Sprintf("%d kills, %d requests sent again", n, l.resent.Load()))
	if lost != 0 || l.resent.Load() == 0 {
		t.Errorf("%d lost; %d requests met a crash", lost, l.resent.Load())
	}
}

// The harness must be able to see a loss.
func TestServerCrash_WithoutLog_LosesRecords(t *testing.T) {
	t.Parallel()
	srv := redistest.Start(t, redistest.Fast...)
	s := openOn(t, clientAt(t, srv.URL()), nil)
	complete(t, s, "k", "first")
	srv.Kill()
	if err := srv.Start(); err != nil {
		t.Fatal(err)
	}
	f, err := openOn(t, clientAt(t, srv.URL()), nil).Claim(t.Context(), proposal("k"))
	if err != nil {
		t.Fatal(err)
	}
	figure(t, "without appendonly a crash of the server loses what it confirmed", true, 1, failures(f.Won), "")
	if !f.Won {
		t.Error("nothing was lost: the harness is blind")
	}
}

// Claims and doubt outlive a restart: a record in flight has no expiry of
// Redis, however short its lease.
func TestRecord_LeaseLapsed_StaysInRedis(t *testing.T) {
	t.Parallel()
	srv := redistest.Start(t, redistest.Durable...)
	s := openOn(t, clientAt(t, srv.URL()), &Options{AllowPark: true})
	p := proposal("k")
	p.Lease, p.Keep, p.Policy = 1, 1, store.Park
	if f, err := s.Claim(t.Context(), p); err != nil || !f.Won {
		t.Fatalf("won %v, error %v", f.Won, err)
	}
	srv.Kill()
	if err := srv.Start(); err != nil {
		t.Fatal(err)
	}
	s = openOn(t, clientAt(t, srv.URL()), &Options{AllowPark: true}) // the old one's connections are dead
	f, err := s.Claim(t.Context(), proposal("k"))
	if err != nil || f.Won || f.Record.Owner != p.Owner {
		t.Fatalf("won %v, error %v: the doubt is forgotten", f.Won, err)
	}
	if d := store.Decide(&f.Record, &store.Call{Fingerprint: p.Fingerprint}, f.Now); d.Action != store.DoPark {
		t.Errorf("Decide says %v", d.Action)
	}
	res, err := s.Sweep(t.Context(), "", 10)
	if err != nil || len(res.Lapsed) != 1 {
		t.Errorf("a sweep hands back %d, error %v", len(res.Lapsed), err)
	}
	for _, state := range []store.State{store.Started, store.Processing, store.Unknown} {
		q := proposal("k")
		q.State = state
		old := get(t, s, "k")
		next, err := s.Swap(t.Context(), old.Seen(), q)
		if err != nil || !next.Won {
			t.Fatalf("won %v, error %v", next.Won, err)
		}
		record, _ := s.name(q.Key.Digest())
		if ttl := s.client.TTL(t.Context(), record).Val(); ttl != -1 {
			t.Errorf("a %v record has an expiry of Redis: %v", state, ttl)
		}
	}
}
