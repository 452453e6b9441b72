package redisstore

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/semel-go/semel/store"
	"github.com/semel-go/semel/store/coalesce"
	"github.com/semel-go/semel/store/redisstore/redistest"
	"github.com/semel-go/semel/sweep"
)

// A node of a cluster hangs, and takes all that its lanes may have in flight
// with it: calls for keys of the other nodes go on.
func TestCluster_NodeHangs_OtherNodesAnswer(t *testing.T) {
	t.Parallel()
	all := redistest.StartCluster(t, false)
	c := redis.NewClusterClient(&redis.ClusterOptions{Addrs: all.Addrs(), ReadTimeout: time.Hour, ContextTimeoutEnabled: true})
	t.Cleanup(func() { _ = c.Close() })
	s := openOn(t, c, nil)
	hung := all.Masters[0]
	var there, elsewhere []string // keys by whether they are on it
	held := map[string]store.Lease{}
	for i := 0; len(there) < 20 || len(elsewhere) < 20; i++ {
		k := testKey(fmt.Sprint(i))
		record, _ := s.name(k.Digest())
		node, err := s.cluster.MasterForKey(t.Context(), record)
		if err != nil {
			t.Fatal(err)
		}
		if node.Options().Addr == hung.Addr() {
			there = append(there, k.Value)
		} else {
			elsewhere = append(elsewhere, k.Value)
		}
		r := claim(t, s, k.Value)
		held[k.Value] = r.Lease()
	}
	each := func(key string) []func(ctx context.Context) error {
		return []func(ctx context.Context) error{
			func(ctx context.Context) error { return second(s.Claim(ctx, proposal(key))) },
			func(ctx context.Context) error { return second(s.Get(ctx, testKey(key))) },
			func(ctx context.Context) error { return s.Settle(ctx, held[key], completion("x")) },
		}
	}
	hung.Freeze()
	var stuck sync.WaitGroup
	t.Cleanup(func() {
		hung.Thaw()
		stuck.Wait()
	})
	for _, key := range there {
		for _, call := range each(key) {
			stuck.Go(func() { _ = call(context.Background()) }) // it ends when the node goes on
		}
	}
	waitFor(t, "calls of each kind queue behind those that hang", func() bool {
		s.inspections.mu.Lock()
		inspecting := len(s.inspections.byNode[hung.Addr()].turn) > 0 // claims wait for that if their connection is new
		s.inspections.mu.Unlock()
		return (inspecting || s.changes.queued() > 0) && s.reads.queued() > 0 && s.settles.queued() > 0
	})
	for _, key := range elsewhere {
		for _, call := range each(key) {
			ctx, cancel := context.WithTimeout(t.Context(), 10*time.Second)
			err := call(ctx)
			cancel()
			if err != nil {
				t.Fatalf("a key of another node: %v", err)
			}
		}
	}
}

// A node of a cluster hangs: lists and sweeps go on with the other nodes, and end with its
// error before the caller's time is over.
func TestCluster_NodeHangs_OthersAreListedAndSwept(t *testing.T) {
	t.Parallel()
	all := redistest.StartCluster(t, false)
	c := redis.NewClusterClient(&redis.ClusterOptions{Addrs: all.Addrs(), ReadTimeout: time.Hour, ContextTimeoutEnabled: true})
	t.Cleanup(func() { _ = c.Close() })
	s := openOn(t, c, nil)
	hung, want := all.Masters[0], 0
	for i := range 30 {
		k := testKey(itoa(i))
		record, _ := s.name(k.Digest())
		node, err := s.cluster.MasterForKey(t.Context(), record)
		if err != nil {
			t.Fatal(err)
		}
		if node.Options().Addr != hung.Addr() {
			want++
		}
		doubt := claim(t, s, k.Value)
		if err := s.Settle(t.Context(), doubt.Lease(), store.Settlement{State: store.Unknown, Attempt: 1}); err != nil {
			t.Fatal(err)
		}
		dead := proposal(k.Value)
		dead.Lease = 1
		dead.Key.Operation = "dead"
		for dead.Key.Value = k.Value; ; dead.Key.Value += "x" { // on the same node
			record, _ := s.name(dead.Key.Digest())
			if on, err := s.cluster.MasterForKey(t.Context(), record); err != nil || on == node {
				break
			}
		}
		if f, err := s.Claim(t.Context(), dead); err != nil || !f.Won {
			t.Fatalf("won %v, error %v", f.Won, err)
		}
	}
	hung.Freeze()
	t.Cleanup(hung.Thaw)
	for name, f := range map[string]store.Filter{"all": {Operation: "charge"}, "in doubt": {States: []store.State{store.Unknown}}} {
		ctx, cancel := context.WithTimeout(t.Context(), 4*time.Second)
		n, failed := 0, error(nil)
		for _, err := range s.List(ctx, f) {
			if failed = err; err == nil {
				n++
			}
		}
		if n != want || failed == nil || !strings.Contains(failed.Error(), "node "+hung.Addr()) || ctx.Err() != nil {
			t.Errorf("%s: %d records, error %v; want %d and the error of %s, before the time is over", name, n, failed, want, hung.Addr())
		}
		cancel()
	}
	stats, err := sweep.Once(t.Context(), s, &sweep.Options{StoreTimeout: 4 * time.Second})
	if stats.Released != want || err == nil || !strings.Contains(err.Error(), "node "+hung.Addr()) {
		t.Errorf("%d calls are recovered, error %v; want %d and the error of %s", stats.Released, err, want, hung.Addr())
	}
}

// A node that is first met when the store is closed has no lane that takes
// anything.
func TestLanes_LaneMadeAfterClose_IsClosed(t *testing.T) {
	s := openNew(t, nil)
	ls := newLanes(func() *lane { return s.newLane(true) })
	before := ls.forNode("before")
	if ls.forNode("before") != before || ls.forNode("other") == before {
		t.Error("a node has one lane, of its own")
	}
	ls.close()
	for _, node := range []string{"before", "after"} {
		if _, err := ls.forNode(node).Do(t.Context(), nil); !errors.Is(err, coalesce.ErrClosed) {
			t.Errorf("%s: %v, want ErrClosed", node, err)
		}
	}
}

// A call ends with its context, even if the client's commands do not.
func TestClient_IgnoresContext_CallsEndWithTheirs(t *testing.T) {
	t.Parallel()
	srv := redistest.Start(t, redistest.Fast...)
	c := redis.NewClient(&redis.Options{Addr: srv.Addr(), ReadTimeout: time.Hour})
	t.Cleanup(func() { _ = c.Close() })
	s := openOn(t, c, nil)
	held := claim(t, s, "held")
	srv.Freeze()
	defer srv.Thaw()
	for name, call := range map[string]func(ctx context.Context) error{
		"claim":                func(ctx context.Context) error { return second(s.Claim(ctx, proposal("new"))) },
		"get":                  func(ctx context.Context) error { return second(s.Get(ctx, held.Key)) },
		"settle":               func(ctx context.Context) error { return s.Settle(ctx, held.Lease(), completion("x")) },
		"ping":                 s.Ping,
		"claim with old check": func(ctx context.Context) error { age(s); return second(s.Claim(ctx, proposal("new"))) },
	} {
		ctx, cancel := context.WithTimeout(t.Context(), 50*time.Millisecond)
		start := time.Now()
		if err := call(ctx); !errors.Is(err, context.DeadlineExceeded) {
			t.Errorf("%s: %v after %v", name, err, time.Since(start))
		}
		cancel()
	}
}
