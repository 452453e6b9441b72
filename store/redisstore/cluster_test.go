package redisstore

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/semel-go/semel/store"
	"github.com/semel-go/semel/store/redisstore/redistest"
)

func openCluster(t *testing.T, all *redistest.Cluster, o *Options) *Store {
	t.Helper()
	c, err := newClient(all.URL())
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = c.Close() })
	return openOn(t, c, o)
}

// Slots move from node to node while work goes on: redirected parts of a
// batch are resolved key by key, and nothing is lost or done twice. A sweep
// and a list see each record that stays.
func TestCluster_SlotsMove_CallsEndOnce(t *testing.T) {
	t.Parallel()
	all := redistest.StartCluster(t, false)
	s := openCluster(t, all, nil)
	l := newLedger()
	var stop atomic.Bool
	var workers sync.WaitGroup
	for g := range 16 {
		workers.Go(func() { l.work(t, s, itoa(g), &stop) })
	}
	l.grow(t, 200)
	for slot := range 60 { // a few have records
		moveSlot(t, all, slot*91)
	}
	l.grow(t, 200)
	stop.Store(true)
	workers.Wait()
	if lost := l.lost(t, s); lost != 0 {
		t.Errorf("%d of %d lost", lost, l.size())
	}
}

// moveSlot moves a slot to the node after the one that has it.
func moveSlot(t *testing.T, all *redistest.Cluster, slot int) {
	t.Helper()
	ctx := t.Context()
	nodes, ids := make([]*redis.Client, 3), make([]string, 3)
	from := -1
	for i, m := range all.Masters {
		nodes[i] = redis.NewClient(&redis.Options{Addr: m.Addr()})
		defer nodes[i].Close()
		ids[i] = nodes[i].Do(ctx, "cluster", "myid").Val().(string)
		if _, err := nodes[i].ClusterCountKeysInSlot(ctx, slot).Result(); err != nil {
			t.Fatal(err)
		}
	}
	shards, err := nodes[0].ClusterShards(ctx).Result()
	if err != nil {
		t.Fatal(err)
	}
	for _, shard := range shards {
		for _, r := range shard.Slots {
			if r.Start <= int64(slot) && int64(slot) <= r.End {
				from = slices.Index(ids, shard.Nodes[0].ID)
			}
		}
	}
	to := (from + 1) % 3
	do := func(on int, args ...any) {
		t.Helper()
		if err := nodes[on].Do(ctx, append([]any{"cluster", "setslot", slot}, args...)...).Err(); err != nil {
			t.Fatal(err)
		}
	}
	do(to, "importing", ids[from])
	do(from, "migrating", ids[to])
	for {
		keys, err := nodes[from].ClusterGetKeysInSlot(ctx, slot, 100).Result()
		if err != nil {
			t.Fatal(err)
		}
		if len(keys) == 0 {
			break
		}
		args := []any{"migrate", "127.0.0.1", itoa(all.Masters[to].Port()), "", 0, 60_000, "keys"}
		for _, k := range keys {
			args = append(args, k)
		}
		if err := nodes[from].Do(ctx, args...).Err(); err != nil {
			t.Fatal(err)
		}
	}
	for _, on := range []int{to, from, (to + 1) % 3} {
		do(on, "node", ids[to])
	}
}

// A record and its floor have one slot; records spread over all nodes.
func TestCluster_RecordAndSweptFence_ShareSlot(t *testing.T) {
	t.Parallel()
	all := redistest.StartCluster(t, false)
	s := openCluster(t, all, nil)
	used := map[string]int{}
	for i := range 300 {
		k := testKey(itoa(i))
		record, floor := s.name(k.Digest())
		if s.sweptFenceOf(record) != floor || idOf(record) == floor {
			t.Fatalf("%s has the floors %s and %s", record, floor, s.sweptFenceOf(record))
		}
		slot := func(name string) int64 { return s.client.ClusterKeySlot(t.Context(), name).Val() }
		if i < 20 && slot(record) != slot(floor) {
			t.Errorf("%s and %s have different slots", record, floor)
		}
		node, err := s.cluster.MasterForKey(t.Context(), record)
		if err != nil {
			t.Fatal(err)
		}
		used[node.Options().Addr]++
	}
	for addr, n := range used {
		if n < 40 {
			t.Errorf("%s has %d of 300 records", addr, n)
		}
	}
	if len(used) != 3 {
		t.Errorf("%d nodes are used", len(used))
	}
}

// A sweep goes from node to node, with a cursor that holds its place though a
// node leaves; each master is checked.
func TestCluster_SweepListCheck_CoverAllNodes(t *testing.T) {
	t.Parallel()
	all := redistest.StartCluster(t, false)
	s := openCluster(t, all, nil)
	for i := range 90 {
		r := claim(t, s, itoa(i))
		end := completion("x")
		end.Keep = 0
		if i%3 == 0 {
			end = completion("stays")
		}
		if err := s.Settle(t.Context(), r.Lease(), end); err != nil {
			t.Fatal(err)
		}
	}
	deleted, steps := 0, 0
	for from, first := store.Cursor(""), true; first || from != ""; first = false {
		res, err := s.Sweep(t.Context(), from, 7)
		if err != nil {
			t.Fatal(err)
		}
		deleted, from, steps = deleted+res.Deleted, res.Next, steps+1
	}
	if deleted != 60 || steps < 3 {
		t.Errorf("%d deleted in %d steps, want 60", deleted, steps)
	}
	n := 0
	for _, err := range s.List(t.Context(), store.Filter{}) {
		if err != nil {
			t.Fatal(err)
		}
		n++
	}
	if n != 30 {
		t.Errorf("%d listed, want 30", n)
	}
	gone := store.Cursor("1||127.0.0.1:0|0 ") // a node that has left goes before the others
	if res, err := s.Sweep(t.Context(), gone, 7); err != nil || res.Deleted != 0 {
		t.Errorf("from a node that has left: %+v, %v", res, err)
	}
	if _, err := s.Sweep(t.Context(), "nonsense", 7); err == nil {
		t.Error("a cursor that is none was taken")
	}
	err := s.Check(t.Context())
	if !errors.Is(err, ErrUnsafe) {
		t.Fatal(err)
	}
	for _, m := range all.Masters {
		if !strings.Contains(err.Error(), "node "+m.Addr()) {
			t.Errorf("%s was not checked: %v", m.Addr(), err)
		}
	}
}

// A replica takes its dead master's place, and work goes on.
func TestCluster_NodeFails_WorkContinues(t *testing.T) {
	t.Parallel()
	all := redistest.StartCluster(t, true)
	s := openCluster(t, all, &Options{Replicas: 1})
	l := newLedger()
	var stop atomic.Bool
	var workers sync.WaitGroup
	for g := range 8 {
		workers.Go(func() { l.work(t, s, itoa(g), &stop) })
	}
	l.grow(t, 100)
	stop.Store(true)
	workers.Wait()
	if err := all.Kill(); err != nil {
		t.Fatal(err)
	}
	after := openCluster(t, all, nil)
	p := proposal("after")
	waitFor(t, "all slots are served again", func() bool {
		for i := range 30 {
			p.Key.Value = fmt.Sprint("after", i)
			if _, err := after.Claim(context.Background(), p); err != nil {
				<-time.After(200 * time.Millisecond) // it takes a minute
				return false
			}
		}
		return true
	})
	if lost := l.lost(t, after); lost != 0 {
		t.Errorf("%d of %d lost", lost, l.size())
	}
}

// misled is what a node says of a slot that it does not have.
type misled string

func (m misled) Error() string { return string(m) }
func (m misled) RedisError()   {}

// misleading answers the first change with an error, and says of each wait
// that a replica has acknowledged.
type misleading struct {
	waitHook
	says error
}

func (h *misleading) ProcessPipelineHook(next redis.ProcessPipelineHook) redis.ProcessPipelineHook {
	next = h.waitHook.ProcessPipelineHook(next)
	return func(ctx context.Context, cmds []redis.Cmder) error {
		if says := h.says; says != nil && strings.HasPrefix(cmds[0].Name(), "eval") {
			h.says = nil
			cmds[0].SetErr(says)
			return says
		}
		return next(ctx, cmds)
	}
}

// Where replicas acknowledge, the store looks for the node by itself.
func TestCluster_ChangeSentToWrongNode_IsSentAgain(t *testing.T) {
	t.Parallel()
	all := redistest.StartCluster(t, false)
	s := openCluster(t, all, &Options{Replicas: 1})
	h := &misleading{waitHook: waitHook{after: func(int) int64 { return 1 }}}
	s.cluster.OnNewNode(func(c *redis.Client) { c.AddHook(h) })
	for _, says := range []string{"MOVED 1 127.0.0.1:1", "ASK 1 127.0.0.1:1", "TRYAGAIN not yet"} {
		h.says = misled(says)
		f, err := s.Claim(t.Context(), proposal(says))
		if err != nil || !f.Won || h.says != nil {
			t.Errorf("%s: won %v, error %v", says, f.Won, err)
		}
	}
	h.says = misled("READONLY it has become a replica")
	if f, err := s.Claim(t.Context(), proposal("k")); err == nil || f.Won {
		t.Errorf("another error: won %v, error %v", f.Won, err)
	}
}
