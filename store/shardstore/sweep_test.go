package shardstore_test

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/semel-go/semel/store"
	"github.com/semel-go/semel/store/storetest"
	"github.com/semel-go/semel/sweep"
)

// fill makes n expired and n lapsed records on each shard.
func (w *world) fill(t testing.TB, n int) {
	t.Helper()
	for i, has := 0, map[string]int{}; len(has) < len(w.mems) || min(has) < 2*n; i++ {
		k := key(fmt.Sprint(i))
		on := w.On(k)
		if has[on] >= 2*n {
			continue
		}
		r := claim(t, w, k)
		if has[on]++; has[on]%2 == 0 {
			if err := w.Settle(t.Context(), r.Lease(), settlement()); err != nil {
				t.Fatal(err)
			}
		}
	}
	w.pass(2 * time.Hour)
}

func min(has map[string]int) int {
	least := 1 << 30
	for _, n := range has {
		if n < least {
			least = n
		}
	}
	return least
}

// pass sweeps from the start to the end, or the first error.
func sweepAll(t testing.TB, w *world, limit int, each func(store.SweepResult)) error {
	t.Helper()
	from := store.Cursor("")
	for range 10_000 {
		res, err := w.Sweep(t.Context(), from, limit)
		if err != nil {
			return err
		}
		each(res)
		if from = res.Next; from == "" {
			return nil
		}
	}
	t.Fatal("the pass does not end")
	return nil
}

// The records that a step hands back are judged by one clock: their shard's.
func TestSweep_Step_ReturnsLapsedOfOneShard(t *testing.T) {
	w := newWorld(t, 3, 48*time.Hour, nil)
	w.fill(t, 5)
	lapsed, deleted := 0, 0
	err := sweepAll(t, w, 1000, func(res store.SweepResult) {
		deleted += res.Deleted
		for _, r := range res.Lapsed {
			lapsed++
			if on := w.On(r.Key); on != w.On(res.Lapsed[0].Key) {
				t.Errorf("a step hands back records of %s and of %s", w.On(res.Lapsed[0].Key), on)
			}
			var n int
			fmt.Sscanf(w.On(r.Key), "s%d", &n)
			if now := store.Time(store.Micros(w.now(n))); !res.Now.Equal(now) {
				t.Errorf("records of shard %d are handed back at %v, and its clock says %v", n, res.Now, now)
			}
		}
	})
	if err != nil || lapsed != 15 || deleted != 15 {
		t.Errorf("%d lapsed, %d deleted, %v; want 15 of each", lapsed, deleted, err)
	}
}

func TestSweep_ShardFails_OthersAreSwept(t *testing.T) {
	for bad := range 3 {
		for _, limit := range []int{1, 3, 1000} {
			isDown := false
			w := newWorld(t, 3, 0, func(i int, op storetest.Op, n int) storetest.Mode {
				if isDown {
					return down(bad)(i, op, n)
				}
				return storetest.None
			})
			w.fill(t, 4)
			isDown = true
			deleted, lapsed := 0, map[store.Key]bool{}
			err := sweepAll(t, w, limit, func(res store.SweepResult) {
				deleted += res.Deleted
				for _, r := range res.Lapsed {
					lapsed[r.Key] = true
				}
			})
			names(t, "Sweep", err, bad, nil)
			if deleted != 8 || limit > 4 && len(lapsed) != 8 {
				t.Errorf("shard %d is down, limit %d: %d deleted, %d handed back, want 8 of each", bad, limit, deleted, len(lapsed))
			}
		}
	}
}

func TestSweep_ShardFailsOnce_IsSweptInSamePass(t *testing.T) {
	failed := false
	w := newWorld(t, 3, 0, func(i int, op storetest.Op, _ int) storetest.Mode {
		if i == 0 && op == storetest.OpSweep && !failed {
			failed = true
			return storetest.Before
		}
		return storetest.None
	})
	w.fill(t, 4)
	n, err := sweep.Once(t.Context(), w, nil)
	if err != nil || n.Deleted != 12 || n.Released != 12 {
		t.Errorf("%+v, %v; want 12 of each", n, err)
	}
}

func TestSweep_AllShardsDown_IsError(t *testing.T) {
	w := newWorld(t, 3, 0, func(int, storetest.Op, int) storetest.Mode { return storetest.Before })
	if err := sweepAll(t, w, 10, func(store.SweepResult) {}); !isInjected(err) {
		t.Errorf("the pass ends with %v, want the error of a shard", err)
	}
}

// A shard that hangs takes the time of its own steps only.
func TestSweep_ShardHangs_OthersAreSwept(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s, a, onB := newFrozen(t)
		k := store.Key{Operation: "pay", Tenant: "ann", Value: onB("pay")}
		p := proposal(k, 1)
		p.Lease = time.Millisecond // its process has died
		if f, err := s.Claim(t.Context(), p); err != nil || !f.Won {
			t.Fatalf("won %v, error %v", f.Won, err)
		}
		time.Sleep(time.Second)
		a.hangs.Store(true)
		stats, err := sweep.Once(t.Context(), s, nil)
		if stats.Released != 1 || !errors.Is(err, context.DeadlineExceeded) || !strings.Contains(err.Error(), `"a"`) {
			t.Errorf("%d records are released, error %v; want 1 and the error of a", stats.Released, err)
		}
		a.hangs.Store(false)
		if _, err := sweep.Once(t.Context(), s, nil); err != nil {
			t.Errorf("after the shard has come back: %v", err)
		}
	})
}

func TestSweep_CursorOfAnotherStore_IsError(t *testing.T) {
	w := newWorld(t, 2, 0, nil)
	for _, c := range []store.Cursor{"x", "1|", "1||s0", "3||s0|", "1|||", "|||"} {
		if res, err := w.Sweep(t.Context(), c, 10); err == nil {
			t.Errorf("Sweep from %q: %+v, want an error", c, res)
		} else if !strings.Contains(err.Error(), "cursor") {
			t.Errorf("Sweep from %q: %v", c, err)
		}
	}
	for _, c := range []store.Cursor{"1||s0|", "2|s0,s1|s1|after:x", "1||s1|0"} {
		if _, err := w.Sweep(t.Context(), c, 10); err != nil {
			t.Errorf("Sweep from %q: %v", c, err)
		}
	}
	if _, err := w.Sweep(t.Context(), "", 0); err == nil {
		t.Error("a limit of 0 is accepted")
	}
}
