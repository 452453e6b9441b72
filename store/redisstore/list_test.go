package redisstore

import (
	"context"
	"errors"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/semel-go/semel/store"
	"github.com/semel-go/semel/store/memstore"
	move "github.com/semel-go/semel/store/moved"
	"github.com/semel-go/semel/store/redisstore/redistest"
)

// scanHook has the server name each key twice, and fails what comes then.
type scanHook struct {
	waitHook
	page  []string
	again bool
	fail  error
}

func (h *scanHook) ProcessHook(next redis.ProcessHook) redis.ProcessHook {
	return func(ctx context.Context, cmd redis.Cmder) error {
		scan, ok := cmd.(*redis.ScanCmd)
		switch {
		case h.fail != nil && cmd.Name() == "evalsha":
			cmd.SetErr(h.fail)
			return h.fail
		case ok && h.again:
			scan.SetVal(h.page, 0)
			return nil
		}
		err := next(ctx, cmd)
		if ok {
			h.page, _ = scan.Val()
			h.again = true
			scan.SetVal(h.page, 1)
		}
		return err
	}
}

func TestList_ScanRepeatsKey_YieldsItOnce(t *testing.T) {
	s := openNew(t, nil)
	for i := range 5 {
		claim(t, s, itoa(i))
	}
	s.client.AddHook(&scanHook{})
	given := map[string]int{}
	for f, err := range s.List(t.Context(), store.Filter{}) {
		if err != nil {
			t.Fatal(err)
		}
		given[f.Record.Key.Value]++
	}
	for i := range 5 {
		if given[itoa(i)] != 1 {
			t.Errorf("%v", given)
		}
	}
}

// If List cannot read a part of the server, its caller gets an error.
func TestList_ServerFails_EndsWithError(t *testing.T) {
	s := openNew(t, nil)
	claim(t, s, "k")
	down := errors.New("down")
	s.client.AddHook(&scanHook{fail: down})
	var errs []error
	for _, err := range s.List(t.Context(), store.Filter{}) {
		errs = append(errs, err)
	}
	if len(errs) != 1 || !errors.Is(errs[0], down) {
		t.Errorf("%v, want %v", errs, down)
	}
}

// beginMove begins to move the slot of a Redis key to the next node. moveKey moves one
// Redis key.
func beginMove(t *testing.T, all *redistest.Cluster, s *Store, record string) (moveKey func(name string)) {
	t.Helper()
	slot := int(clientAt(t, all.Masters[0].URL()).ClusterKeySlot(t.Context(), record).Val())
	owner, err := s.cluster.MasterForKey(t.Context(), record)
	if err != nil {
		t.Fatal(err)
	}
	from := slices.IndexFunc(all.Masters, func(m *redistest.Server) bool { return m.Addr() == owner.Options().Addr })
	to := (from + 1) % 3
	source, target := clientAt(t, all.Masters[from].URL()), clientAt(t, all.Masters[to].URL())
	do := func(c *redis.Client, args ...any) {
		t.Helper()
		if err := c.Do(t.Context(), args...).Err(); err != nil {
			t.Fatal(err)
		}
	}
	id := func(c *redis.Client) any { return c.Do(t.Context(), "cluster", "myid").Val() }
	do(target, "cluster", "setslot", slot, "importing", id(source))
	do(source, "cluster", "setslot", slot, "migrating", id(target))
	return func(name string) { do(source, "migrate", "127.0.0.1", all.Masters[to].Port(), name, 0, 60_000) }
}

// list lists the keys of records, and the errors.
func list(t *testing.T, s *Store, f store.Filter) (keys []string, err error) {
	t.Helper()
	for found, listErr := range s.List(t.Context(), f) {
		if err = errors.Join(err, listErr); listErr == nil {
			keys = append(keys, found.Record.Key.Value)
		}
	}
	return keys, err
}

// While a slot moves, or after a move that was broken off, the list of doubts is whole, and
// the list of all records ends with an error, so that no copy counts as complete.
func TestList_SlotIsMoving_DoubtsAreWholeAndAllIsAnError(t *testing.T) {
	t.Parallel()
	all := redistest.StartCluster(t, false)
	s := openCluster(t, all, nil)
	r := claim(t, s, "doubt")
	if err := s.Settle(t.Context(), r.Lease(), store.Settlement{State: store.Unknown, Attempt: 1}); err != nil {
		t.Fatal(err)
	}
	for i := range 30 {
		claim(t, s, itoa(i))
	}
	record, fence := s.name(testKey("doubt").Digest())
	moveKey := beginMove(t, all, s, record)
	for _, moved := range []string{"nothing", record, doubtsOf(fence)} {
		if moved != "nothing" {
			moveKey(moved)
		}
		if keys, err := list(t, s, store.Filter{States: []store.State{store.Unknown}}); len(keys) != 1 || err != nil {
			t.Errorf("%s has moved: in doubt are %q, error %v; want one and no error", moved, keys, err)
		}
		if keys, err := list(t, s, store.Filter{}); len(keys) != 31 || err == nil || !strings.Contains(err.Error(), "slot") {
			t.Errorf("%s has moved: %d records, error %v; want 31 and an error that names the slot", moved, len(keys), err)
		}
		dst := memstore.New(nil)
		if stats, err := move.Copy(t.Context(), dst, s, nil); err == nil {
			t.Errorf("%s has moved: the copy succeeds: %+v", moved, stats)
		}
		if verified, err := move.Verify(t.Context(), dst, s, nil); err == nil && verified.Complete() {
			t.Errorf("%s has moved: the comparison finds the move complete: %+v", moved, verified)
		}
	}
}

// A record that is elsewhere is not absent.
func TestReadAnswer_Redirected_IsError(t *testing.T) {
	for _, says := range []string{"MOVED 1 127.0.0.1:1", "ASK 1 127.0.0.1:1", "TRYAGAIN not yet"} {
		if _, there, err := readAnswer(&call{err: misled(says)}); there || !errors.Is(err, misled(says)) {
			t.Errorf("%s: there %v, error %v; want the error", says, there, err)
		}
	}
}

// Calls that need one Redis key go on while its slot moves.
func TestRenew_SlotIsMoving_KeepsLease(t *testing.T) {
	t.Parallel()
	for name, o := range map[string]*Options{"not acknowledged": nil, "acknowledged": {Replicas: 1}} {
		all := redistest.StartCluster(t, o != nil)
		s := openCluster(t, all, o)
		r := claim(t, s, "k")
		done := claim(t, s, "done")
		if err := s.Settle(t.Context(), done.Lease(), store.Settlement{State: store.Completed, Attempt: 1, Keep: time.Hour}); err != nil {
			t.Fatal(err)
		}
		record, _ := s.name(r.Key.Digest())
		doneRecord, _ := s.name(done.Key.Digest())
		moveKey, moveDone := beginMove(t, all, s, record), beginMove(t, all, s, doneRecord)
		for _, moved := range []bool{false, true} {
			if moved {
				moveKey(record)
				moveDone(doneRecord)
			}
			if errs, err := s.Renew(t.Context(), []store.Lease{r.Lease()}, time.Minute); err != nil || errs[0] != nil {
				t.Errorf("%s, moved %v: Renew: %v, %v", name, moved, errs, err)
			}
			if err := s.RecordStep(t.Context(), r.Lease(), store.Step{Name: "step"}); err != nil {
				t.Errorf("%s, moved %v: RecordStep: %v", name, moved, err)
			}
			if got := get(t, s, "k"); got.Owner != r.Owner {
				t.Errorf("%s, moved %v: Get: %+v", name, moved, got)
			}
			if got := get(t, s, "done"); got.State != store.Completed {
				t.Errorf("%s, moved %v: Get of a completed record: %+v", name, moved, got)
			}
		}
	}
}

// While a master is down, the records of the others are listed, and then its error.
func TestList_MasterDown_YieldsOthersThenError(t *testing.T) {
	t.Parallel()
	all := redistest.StartCluster(t, false, "--cluster-require-full-coverage", "no")
	s := openCluster(t, all, nil)
	// The first one that the store asks.
	down := slices.MinFunc(all.Masters, func(a, b *redistest.Server) int { return strings.Compare(a.Addr(), b.Addr()) })
	want := 0
	for i := range 30 {
		r := claim(t, s, itoa(i))
		if err := s.Settle(t.Context(), r.Lease(), store.Settlement{State: store.Unknown, Attempt: 1}); err != nil {
			t.Fatal(err)
		}
		record, _ := s.name(r.Key.Digest())
		if on, err := s.cluster.MasterForKey(t.Context(), record); err != nil {
			t.Fatal(err)
		} else if on.Options().Addr != down.Addr() {
			want++
		}
	}
	down.Kill()
	for name, f := range map[string]store.Filter{"all": {}, "in doubt": {States: []store.State{store.Unknown}}} {
		keys, err := list(t, s, f)
		if len(keys) != want || err == nil || !strings.Contains(err.Error(), "node "+down.Addr()) {
			t.Errorf("%s: %d records, error %v; want %d and the error of %s", name, len(keys), err, want, down.Addr())
		}
	}
}
