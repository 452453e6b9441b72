package redisstore

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/semel-go/semel/store"
	"github.com/semel-go/semel/store/coalesce"
	"github.com/semel-go/semel/store/redisstore/redistest"
	"github.com/semel-go/semel/sweep"
)

// A node of a cluster hangs, and takes all that its batchers may have in flight
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
		inspecting := len(s.inspections.byNode[hung.Addr()].reading) > 0 // claims wait for that if their connection is new
		s.inspections.mu.Unlock()
		return (inspecting || s.changes.queued() > 0) && s.reads.queued() > 0 && s.settles.queued() > 0
	})
	for _, key := range elsewhere {
		for _, call := range each(key) {
			ctx, cancel := context.WithTimeout(t.Context(), 5*time.Minute) // without it, a call that hangs has no end
			err := call(ctx)
			cancel()
			if err != nil {
				t.Fatalf("a key of another node: %v", err)
			}
		}
	}
}

// askTime is the time that the caller of a list or of a step of a sweep gives. It is so long
// that a slow machine does not use it up.
const askTime = 30 * time.Minute

// asking is the key of a context's value that marks the requests of a list or a sweep. The
// client's own requests do not have it.
type asking struct{}

// halfHook is on each node of a cluster. It reports a request that allows the node that hangs
// more than half of the caller's askTime, and ends that request soon, as if the rest of its
// time had passed. Then no time is left to ask the other nodes for the map of slots.
type halfHook struct {
	t          *testing.T
	addr, hung string
	asked      *atomic.Int64 // requests to the node that hangs
}

func (h *halfHook) DialHook(next redis.DialHook) redis.DialHook { return next }

func (h *halfHook) ProcessHook(next redis.ProcessHook) redis.ProcessHook {
	return func(ctx context.Context, cmd redis.Cmder) error {
		if h.addr != h.hung && ctx.Value(asking{}) != nil && cmd.Name() == "cluster" {
			cmd.SetErr(context.DeadlineExceeded)
			return context.DeadlineExceeded
		}
		ctx, cancel := h.limit(ctx, cmd.Name())
		defer cancel()
		return next(ctx, cmd)
	}
}

func (h *halfHook) ProcessPipelineHook(next redis.ProcessPipelineHook) redis.ProcessPipelineHook {
	return func(ctx context.Context, cmds []redis.Cmder) error {
		ctx, cancel := h.limit(ctx, cmds[0].Name())
		defer cancel()
		return next(ctx, cmds)
	}
}

func (h *halfHook) limit(ctx context.Context, name string) (context.Context, context.CancelFunc) {
	if h.addr != h.hung || ctx.Value(asking{}) == nil {
		return context.WithCancel(ctx)
	}
	h.asked.Add(1)
	if end, ok := ctx.Deadline(); !ok || time.Until(end) > askTime/2 {
		h.t.Errorf("%s may take the node that hangs %v, has an end: %v; want at most half of %v", name, time.Until(end), ok, askTime)
	}
	return context.WithTimeout(ctx, 100*time.Millisecond)
}

// A node of a cluster hangs: lists and sweeps give it half of their time, go on with the
// other nodes, and end with its error.
func TestCluster_NodeHangs_OthersAreListedAndSwept(t *testing.T) {
	t.Parallel()
	all := redistest.StartCluster(t, false)
	c := redis.NewClusterClient(&redis.ClusterOptions{Addrs: all.Addrs(), ReadTimeout: time.Hour, ContextTimeoutEnabled: true})
	t.Cleanup(func() { _ = c.Close() })
	hung, want := all.Masters[0], 0
	var asked atomic.Int64
	c.OnNewNode(func(on *redis.Client) { on.AddHook(&halfHook{t, on.Options().Addr, hung.Addr(), &asked}) })
	s := openOn(t, c, nil)
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
	ctx := context.WithValue(t.Context(), asking{}, true)
	for name, f := range map[string]store.Filter{"all": {Operation: "charge"}, "in doubt": {States: []store.State{store.Unknown}}} {
		asked.Store(0)
		ctx, cancel := context.WithTimeout(ctx, askTime)
		n, failed := 0, error(nil)
		for _, err := range s.List(ctx, f) {
			if failed = err; err == nil {
				n++
			}
		}
		if n != want || failed == nil || !strings.Contains(failed.Error(), "node "+hung.Addr()) || asked.Load() == 0 {
			t.Errorf("%s: %d records, error %v, %s was asked %d times; want %d and its error", name, n, failed, hung.Addr(), asked.Load(), want)
		}
		cancel()
	}
	asked.Store(0)
	stats, err := sweep.Once(ctx, s, &sweep.Options{StoreTimeout: askTime})
	if stats.Released != want || err == nil || !strings.Contains(err.Error(), "node "+hung.Addr()) || asked.Load() == 0 {
		t.Errorf("%d calls are recovered, error %v, %s was asked %d times; want %d and its error", stats.Released, err, hung.Addr(), asked.Load(), want)
	}
}

// A node that is first met when the store is closed has no batcher that takes
// anything.
func TestBatchers_BatcherMadeAfterClose_IsClosed(t *testing.T) {
	s := openNew(t, nil)
	bs := newBatchers(func() *batcher { return s.newBatcher(true) })
	before := bs.forNode("before")
	if bs.forNode("before") != before || bs.forNode("other") == before {
		t.Error("a node has one batcher, of its own")
	}
	bs.close()
	for _, node := range []string{"before", "after"} {
		if _, err := bs.forNode(node).Do(t.Context(), nil); !errors.Is(err, coalesce.ErrClosed) {
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
