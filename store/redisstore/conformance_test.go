package redisstore

import (
	"context"
	"strconv"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/semel-go/semel/store"
	"github.com/semel-go/semel/store/redisstore/redistest"
	"github.com/semel-go/semel/store/storetest"
)

// openStanding opens a store whose clock stands still, in a key.
func openStanding(t testing.TB) *Store {
	o := Options{Prefix: newPrefix(), AllowPark: true}
	o.clock = "tonumber(redis.call('GET', " + strconv.Quote(o.Prefix+"clock") + "))"
	s := openNew(t, &o)
	set := s.client.Set(context.Background(), o.Prefix+"clock", time.Unix(1_700_000_000, 123_456_000).UnixMicro(), 0)
	if err := set.Err(); err != nil {
		t.Fatal(err)
	}
	return s
}

func advance(t testing.TB, st store.Store, d time.Duration) {
	s := st.(*Store)
	if err := s.client.IncrBy(context.Background(), s.opt.Prefix+"clock", d.Microseconds()).Err(); err != nil {
		t.Fatal(err)
	}
}

func reopen(t testing.TB, st store.Store) store.Store {
	s := st.(*Store)
	return openOn(t, s.client, &s.opt)
}

// The suite that every store passes, with a clock that the suite moves.
func TestConformance(t *testing.T) {
	storetest.Run(t, storetest.Harness{
		Open:    func(t testing.TB) store.Store { return openStanding(t) },
		Advance: advance,
		Reopen:  reopen,
	})
}

// The same with the server's clock.
func TestConformance_ServerClock(t *testing.T) {
	storetest.Run(t, storetest.Harness{
		Open:      func(t testing.TB) store.Store { return openNew(t, &Options{AllowPark: true}) },
		Reopen:    reopen,
		Histories: 100,
	})
}

// openClient is a store on a client that many tests share.
func openClient(t testing.TB, c redis.UniversalClient, o Options) *Store {
	o.Prefix = newPrefix()
	return openOn(t, c, &o)
}

// The same on a cluster of three nodes.
func TestConformance_Cluster(t *testing.T) {
	all := redistest.StartCluster(t, false)
	c, err := newClient(all.URL())
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = c.Close() })
	storetest.Run(t, storetest.Harness{
		Open:      func(t testing.TB) store.Store { return openClient(t, c, Options{AllowPark: true}) },
		Reopen:    reopen,
		Histories: 20,
	})
}

// The same where replicas must acknowledge each change: on a cluster each of
// whose nodes has one.
func TestConformance_Replicas(t *testing.T) {
	all := redistest.StartCluster(t, true)
	c, err := newClient(all.URL())
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = c.Close() })
	storetest.Run(t, storetest.Harness{
		Open: func(t testing.TB) store.Store {
			return openClient(t, c, Options{AllowPark: true, Replicas: 1, AckTimeout: 10 * time.Second})
		},
		Reopen:    reopen,
		Histories: 4,
	})
}
