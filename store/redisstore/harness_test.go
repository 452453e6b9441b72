package redisstore

import (
	"context"
	"crypto/rand"
	"fmt"
	"os"
	"sync/atomic"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/semel-go/semel/store"
	"github.com/semel-go/semel/store/redisstore/redistest"
)

func TestMain(m *testing.M) {
	redis.SetLogger(silence{}) // servers die here all the time
	os.Exit(redistest.Main(m))
}

type silence struct{}

func (silence) Printf(context.Context, string, ...any) {}

var prefixes atomic.Int64

// newPrefix is one that no other test has.
func newPrefix() string { return fmt.Sprintf("t%d_%d*?[a]\\:", os.Getpid(), prefixes.Add(1)) }

// clientAt is a client that t closes.
func clientAt(t testing.TB, url string) *redis.Client {
	t.Helper()
	c, err := newClient(url)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = c.Close() })
	return c.(*redis.Client)
}

// openOn is a store on a client, which t closes.
func openOn(t testing.TB, c redis.UniversalClient, o *Options) *Store {
	t.Helper()
	s, err := New(c, o)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := s.Close(); err != nil {
			t.Errorf("Close: %v", err)
		}
	})
	return s
}

// openNew opens a store of its own on the shared server.
func openNew(t testing.TB, o *Options) *Store {
	t.Helper()
	var opt Options
	if o != nil {
		opt = *o
	}
	if opt.Prefix == "" {
		opt.Prefix = newPrefix()
	}
	c := clientAt(t, redistest.Database(t))
	forget(t, c, opt.Prefix)
	return openOn(t, c, &opt)
}

// forget removes what a test leaves on a server that others use too.
func forget(t testing.TB, c *redis.Client, prefix string) {
	t.Cleanup(func() {
		ctx := context.Background()
		var names []string
		for it := c.Scan(ctx, 0, "*", 1000).Iterator(); it.Next(ctx); {
			if n := it.Val(); len(n) >= len(prefix) && n[:len(prefix)] == prefix {
				names = append(names, n)
			}
		}
		for len(names) > 0 {
			n := min(500, len(names))
			c.Unlink(ctx, names[:n]...)
			names = names[n:]
		}
	})
}

func testKey(value string) store.Key {
	return store.Key{Operation: "charge", Tenant: "acme", Value: value}
}

func newOwner() (o store.Owner) {
	_, _ = rand.Read(o[:])
	return o
}

func proposal(value string) store.Proposal {
	return store.Proposal{
		Key: testKey(value), State: store.Processing, Owner: newOwner(), Holder: "test/1", Attempt: 1,
		Lease: time.Minute, Keep: time.Hour, Fingerprint: store.Fingerprint{Alg: "sha256", Sum: "sum of " + value},
	}
}

func completion(body string) store.Settlement {
	return store.Settlement{State: store.Completed, Attempt: 1, Keep: time.Hour, Outcome: store.Outcome{
		Code: 201, Codec: "json", Body: []byte(body), Header: []store.Header{{Name: "Content-Type", Value: "application/json"}},
	}}
}

// claim claims value, and fails the test if that does not win.
func claim(t testing.TB, s store.Store, value string) store.Record {
	t.Helper()
	f, err := s.Claim(context.Background(), proposal(value))
	if err != nil || !f.Won {
		t.Fatalf("claim of %s: won %v, error %v", value, f.Won, err)
	}
	return f.Record
}

// complete claims and settles value.
func complete(t testing.TB, s store.Store, value, body string) store.Record {
	t.Helper()
	r := claim(t, s, value)
	if err := s.Settle(context.Background(), r.Lease(), completion(body)); err != nil {
		t.Fatalf("settle of %s: %v", value, err)
	}
	return get(t, s, value)
}

func get(t testing.TB, s store.Store, value string) store.Record {
	t.Helper()
	f, err := s.Get(context.Background(), testKey(value))
	if err != nil {
		t.Fatalf("get of %s: %v", value, err)
	}
	return f.Record
}

// queued is how many calls wait in the lanes of one kind.
func (ls *lanes) queued() (n int) {
	ls.mu.RLock()
	defer ls.mu.RUnlock()
	n = ls.only.Queued()
	for _, l := range ls.byAddress {
		n += l.Queued()
	}
	return n
}

// waitFor polls for an event.
func waitFor(t testing.TB, what string, is func() bool) {
	t.Helper()
	for start := time.Now(); !is(); <-time.After(5 * time.Millisecond) {
		if time.Since(start) > 3*time.Minute {
			t.Fatalf("it does not come to this: %s", what)
		}
	}
}
