package redisstore

import (
	"context"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/semel-go/semel/store"
	"github.com/semel-go/semel/store/redisstore/redistest"
	"github.com/semel-go/semel/sweep"
)

// A pass returns each lapsed record once, even if the caller leaves it as it is,
// and no unreadable record.
func TestSweep_WholePass_ReturnsEachLapsedRecordOnce(t *testing.T) {
	s := openNew(t, nil)
	for i := range 6 {
		p := proposal(itoa(i))
		p.Lease = 1
		if f, err := s.Claim(t.Context(), p); err != nil || !f.Won {
			t.Fatalf("won %v, error %v", f.Won, err)
		}
		if record, _ := s.name(p.Key.Digest()); i == 0 {
			if err := s.client.Append(t.Context(), record, "more").Err(); err != nil {
				t.Fatal(err)
			}
		}
	}
	given := map[string]int{}
	for from, step := store.Cursor(""), 0; from != "" || step == 0; step++ {
		res, err := s.Sweep(t.Context(), from, 1)
		if err != nil || step > 20 {
			t.Fatalf("step %d: %v, error %v", step, given, err)
		}
		for i := range res.Lapsed {
			given[res.Lapsed[i].Key.Value]++
		}
		from = res.Next
	}
	for i := 1; i < 6; i++ {
		if given[itoa(i)] != 1 || len(given) != 5 {
			t.Errorf("handed back: %v", given)
		}
	}
}

// The clocks of a cluster's nodes differ. The returned records have lapsed by the
// returned clock.
func TestSweep_NodeClocksDiffer_ReturnsLapsedByNow(t *testing.T) {
	now := store.Time(1_700_000_000_000_000)
	lapsed := store.Record{State: store.Processing, Until: now}
	not := store.Record{State: store.Processing, Until: now.Add(time.Microsecond)}
	w := &sweeper{res: store.SweepResult{Lapsed: []store.Record{not, lapsed, not}, Now: now}}
	if got := w.result().Lapsed; len(got) != 1 || !got[0].Until.Equal(now) {
		t.Errorf("%+v", got)
	}
}

// While a master is down, the calls of dead processes on the other masters are recovered.
func TestSweep_MasterDown_OtherNodesAreSwept(t *testing.T) {
	t.Parallel()
	all := redistest.StartCluster(t, false, "--cluster-require-full-coverage", "no")
	s := openCluster(t, all, nil)
	first := slices.MinFunc(all.Masters, func(a, b *redistest.Server) int { return strings.Compare(a.Addr(), b.Addr()) })
	var keys []store.Key
	for i := 0; len(keys) < 6; i++ {
		record, _ := s.name(testKey(itoa(i)).Digest())
		node, err := s.cluster.MasterForKey(t.Context(), record)
		if err != nil {
			t.Fatal(err)
		}
		if node.Options().Addr == first.Addr() {
			continue
		}
		p := proposal(itoa(i))
		p.Lease = 1
		if f, err := s.Claim(t.Context(), p); err != nil || !f.Won {
			t.Fatalf("won %v, error %v", f.Won, err)
		}
		keys = append(keys, p.Key)
	}
	first.Kill()
	stats, err := sweep.Once(t.Context(), s, nil)
	if stats.Released != len(keys) || err == nil || !strings.Contains(err.Error(), "node "+first.Addr()) {
		t.Errorf("%d calls are recovered, error %v; want %d and the error of %s", stats.Released, err, len(keys), first.Addr())
	}
	for _, k := range keys {
		if f, err := s.Get(t.Context(), k); err != nil || f.Record.State != store.Released {
			t.Errorf("the record of %s is %v, error %v", k.Value, f.Record.State, err)
		}
	}
}

// A move of a slot was broken off, and the slot has more expired records than a step may
// delete. The pass ends, and has deleted the records of the other slots.
func TestSweep_SlotStaysMoving_OtherSlotsAreSwept(t *testing.T) {
	t.Parallel()
	all := redistest.StartCluster(t, false)
	s := openCluster(t, all, nil)
	first, _ := s.name(testKey("0").Digest())
	moving, others := 0, 0
	for i := 0; moving < 20; i++ {
		record, _ := s.name(testKey(itoa(i)).Digest())
		switch {
		case s.sweptFenceOf(record) == s.sweptFenceOf(first):
			moving++
		case others < 30:
			others++
		default:
			continue
		}
		r := claim(t, s, itoa(i))
		end := completion("x")
		end.Keep = 0
		if err := s.Settle(t.Context(), r.Lease(), end); err != nil {
			t.Fatal(err)
		}
	}
	beginMove(t, all, s, first)
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	steps := 0
	stats, err := sweep.Once(ctx, s, &sweep.Options{Batch: 10, Rest: -1, AfterStep: func(sweep.Stats) {
		if steps++; steps > 20 {
			cancel()
		}
	}})
	if stats.Deleted != others || err != nil {
		t.Errorf("%d records are deleted in %d steps, error %v; want %d", stats.Deleted, steps, err, others)
	}
}
