package redisstore

import (
	"testing"
	"time"

	"github.com/semel-go/semel/store"
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

// A cursor of a node is none of another's.
func TestSweep_CursorOfRemovedNode_ContinuesAtNext(t *testing.T) {
	w := &sweeper{nodes: []node{{name: "b"}, {name: "d"}}}
	for from, want := range map[place]place{
		{"a", 7, "x"}: {node: "b"}, {"b", 7, "x"}: {"b", 7, "x"}, {"c", 7, "x"}: {node: "d"}, {"d", 7, "x"}: {"d", 7, "x"}, {}: {node: "b"},
	} {
		at := from
		on, next := w.locate(&at)
		if on == nil || at != want || on.name != at.node || (next != nil) != (on.name == "b") {
			t.Errorf("from %+v: %+v", from, at)
		}
	}
	if on, _ := w.locate(&place{node: "e"}); on != nil {
		t.Errorf("behind the last is %+v", on)
	}
}
