package redisstore

import (
	"context"
	"fmt"
	"os"
	"sync/atomic"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/semel-go/semel/internal/recordtest"
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

// The records of the tests.
var (
	testKey, newOwner, proposal, completion = recordtest.Key, recordtest.NewOwner, recordtest.Proposal, recordtest.Completion
	claim, complete, get                    = recordtest.Claim, recordtest.Complete, recordtest.Get
)

// queued is how many calls wait in the batchers of one kind.
func (bs *nodeBatchers) queued() (n int) {
	bs.mu.RLock()
	defer bs.mu.RUnlock()
	n = bs.only.Queued()
	for _, b := range bs.byAddress {
		n += b.Queued()
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
