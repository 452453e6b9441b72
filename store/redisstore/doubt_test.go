package redisstore

import (
	"context"
	"slices"
	"strings"
	"sync"
	"testing"

	"github.com/redis/go-redis/v9"

	"github.com/semel-go/semel/store"
	"github.com/semel-go/semel/store/redisstore/redistest"
)

// commandLog notes the names of all commands of a client.
type commandLog struct {
	waitHook
	mu    sync.Mutex
	names map[string]int
}

func (l *commandLog) note(cmds ...redis.Cmder) {
	l.mu.Lock()
	defer l.mu.Unlock()
	for _, cmd := range cmds {
		l.names[cmd.Name()]++
	}
}

func (l *commandLog) ProcessHook(next redis.ProcessHook) redis.ProcessHook {
	return func(ctx context.Context, cmd redis.Cmder) error {
		l.note(cmd)
		return next(ctx, cmd)
	}
}

func (l *commandLog) ProcessPipelineHook(next redis.ProcessPipelineHook) redis.ProcessPipelineHook {
	return func(ctx context.Context, cmds []redis.Cmder) error {
		l.note(cmds...)
		return next(ctx, cmds)
	}
}

// park claims value and leaves it in doubt.
func park(t testing.TB, s *Store, value string) {
	t.Helper()
	r := claim(t, s, value)
	if err := s.Settle(t.Context(), r.Lease(), store.Settlement{State: store.Unknown, Attempt: 1, Error: "lost"}); err != nil {
		t.Fatal(err)
	}
}

// inDoubt are the keys of the records in doubt, sorted.
func inDoubt(t testing.TB, s *Store) (keys []string) {
	t.Helper()
	for f, err := range s.List(t.Context(), store.Filter{States: []store.State{store.Unknown}}) {
		if err != nil {
			t.Fatal(err)
		}
		keys = append(keys, f.Record.Key.Value)
	}
	slices.Sort(keys)
	return keys
}

// More records are in doubt than fit on one page of a set.
func TestList_InDoubt_NoScan(t *testing.T) {
	s := openNew(t, nil)
	var want []string
	for i := range 3*pageSize + 1 {
		park(t, s, itoa(i))
		want = append(want, itoa(i))
	}
	for i := range 10 {
		complete(t, s, "done"+itoa(i), "result")
	}
	slices.Sort(want)
	log := &commandLog{names: map[string]int{}}
	s.client.AddHook(log)
	if got := inDoubt(t, s); !slices.Equal(got, want) {
		t.Errorf("%d records are in doubt, want %d: %q", len(got), len(want), got)
	}
	for _, name := range []string{"scan", "keys"} {
		if n := log.names[name]; n != 0 {
			t.Errorf("it sent %s %d times", strings.ToUpper(name), n)
		}
	}
	if log.names["sscan"] < 2 {
		t.Errorf("the commands were %v", log.names)
	}
}

// In a cluster each bucket has a set, in the slot of its records.
func TestList_InDoubtInCluster_NoScan(t *testing.T) {
	t.Parallel()
	all := redistest.StartCluster(t, false)
	s := openCluster(t, all, nil)
	var want []string
	for i := range 50 {
		park(t, s, itoa(i))
		want = append(want, itoa(i))
		complete(t, s, "done"+itoa(i), "result")
	}
	slices.Sort(want)
	log := &commandLog{names: map[string]int{}}
	s.client.AddHook(log)
	if got := inDoubt(t, s); !slices.Equal(got, want) {
		t.Errorf("%q are in doubt, want %q", got, want)
	}
	if log.names["scan"]+log.names["keys"] != 0 || log.names["sscan"] < buckets {
		t.Errorf("the commands were %v", log.names)
	}
}

// Check asks the server for its settings, and for no records.
func TestCheck_ReadsNoRecords(t *testing.T) {
	s := openNew(t, nil)
	complete(t, s, "k", "result")
	log := &commandLog{names: map[string]int{}}
	s.client.AddHook(log)
	_ = s.Check(t.Context()) // the test's server is unsafe, on purpose
	for name := range log.names {
		if name != "info" && name != "config" {
			t.Errorf("it sent %s", strings.ToUpper(name))
		}
	}
	if log.names["info"] == 0 {
		t.Error("it sent no INFO")
	}
}

// A record in doubt whose key another program has removed is not listed, and does not
// end the list.
func TestList_DoubtWithoutRecord_IsLeftOut(t *testing.T) {
	s := openNew(t, nil)
	park(t, s, "removed")
	park(t, s, "kept")
	k := testKey("removed")
	record, _ := s.name(k.Digest())
	if err := s.client.Del(t.Context(), record).Err(); err != nil {
		t.Fatal(err)
	}
	if got := inDoubt(t, s); !slices.Equal(got, []string{"kept"}) {
		t.Errorf("%q are in doubt, want the other one", got)
	}
}
