package nearcache_test

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/semel-go/semel/store"
	"github.com/semel-go/semel/store/memstore"
	"github.com/semel-go/semel/store/nearcache"
	"github.com/semel-go/semel/store/storetest"
)

func TestFront_RecordExpired_IsMiss(t *testing.T) {
	const keep, skew = 100 * time.Second, 10 * time.Second
	for name, c := range map[string]struct {
		change func(p *pair)
		trips  int
	}{
		"in time":                       {func(p *pair) { p.pass(89 * time.Second) }, 0},
		"too late":                      {func(p *pair) { p.pass(90 * time.Second) }, 1},
		"the front's clock is ahead":    {func(p *pair) { p.front.clock.Advance(90 * time.Second) }, 1},
		"the front's clock went back":   {func(p *pair) { p.front.clock.Advance(-time.Second) }, 1},
		"the process's wall clock says": {func(p *pair) { p.here.Advance(90 * time.Second) }, 1},
	} {
		p := newPair(t, nearcache.Options{Skew: skew, MaxAge: time.Hour, MaxBytes: 1}, nil)
		complete(t, p.mem, "k", keep)
		get(t, p, "k")
		c.change(p)
		p.other.trip(t, c.trips, name, func() { get(t, p.other, "k") })
	}
	p := newPair(t, nearcache.Options{MaxAge: time.Minute, MaxBytes: 1}, nil)
	complete(t, p.mem, "k", time.Hour)
	get(t, p, "k")
	p.pass(59 * time.Second)
	p.other.trip(t, 0, "within the age", func() { claim(t, p.other, "k") })
	p.pass(time.Second)
	p.other.trip(t, 1, "after the age", func() { claim(t, p.other, "k") })
}

// A record from the front keeps the rest of its lifetime in memory.
func TestFront_RecordCachedInMemory_KeepsItsLife(t *testing.T) {
	p := newPair(t, nearcache.Options{MaxAge: time.Minute}, nil)
	complete(t, p, "k", time.Hour)
	p.pass(50 * time.Second)
	p.other.trip(t, 0, "within the age", func() { claim(t, p.other, "k") })
	p.pass(10 * time.Second)
	p.other.trip(t, 1, "after the age", func() { claim(t, p.other, "k") })
}

// A front that is slow to claim and to settle: the time that this takes counts,
// also for a process whose wall clock is behind and would let it pass.
func TestFront_SlowWrite_DoesNotExtendLife(t *testing.T) {
	for op := range map[storetest.Op]bool{storetest.OpClaim: true, storetest.OpSettle: true} {
		var p *pair
		p = newPair(t, nearcache.Options{Skew: 1, MaxAge: time.Hour, MaxBytes: 1}, func(o storetest.Op, _ int) storetest.Mode {
			if o == op {
				p.pass(50 * time.Second)
			}
			return storetest.None
		})
		behind := *p.other
		behind.Store = newCache(t, behind.calls, &nearcache.Options{
			Skew: 1, MaxAge: time.Hour, MaxBytes: 1, Front: p.faults, FrontTimeout: time.Minute, Now: func() time.Time { return p.here.Now().Add(-time.Hour) },
		})
		complete(t, p.mem, "k", 100*time.Second)
		get(t, p, "k")
		p.pass(49 * time.Second)
		behind.trip(t, 0, fmt.Sprint("in time, after a slow ", op), func() { get(t, behind, "k") })
		p.pass(time.Second)
		behind.trip(t, 1, fmt.Sprint("too late, after a slow ", op), func() { get(t, behind, "k") })
	}
}

func TestSwap_KeyInFront_RemovesIt(t *testing.T) {
	p := newPair(t, nearcache.Options{}, nil)
	complete(t, p, "k", time.Hour)
	f := get(t, p, "k")
	if _, err := p.Swap(t.Context(), f.Record.Seen(), proposal("k")); err != nil {
		t.Fatal(err)
	}
	for _, st := range []store.Store{p, p.other} {
		if f := claim(t, st, "k"); f.Record.State != store.Processing {
			t.Errorf("a claim finds it %v", f.Record.State)
		}
	}
}

// A process that read the key before the swap, and writes to the front only
// after it, does not put the earlier record back.
func TestSwap_LateWriteOfEarlierRecord_FrontKeepsItOut(t *testing.T) {
	for name, op := range map[string]storetest.Op{
		"the swap comes before the write":    storetest.OpClaim,
		"the swap comes while it is written": storetest.OpSettle,
	} {
		for _, isOwn := range []bool{false, true} {
			var p *pair
			var swapped store.Found
			armed := false
			p = newPair(t, nearcache.Options{MaxBytes: 1 << 20}, func(o storetest.Op, _ int) storetest.Mode {
				if armed && o == op { // the first process is about to write to the front
					armed = false
					now := get(t, p.mem, "k")
					var err error
					if swapped, err = p.other.Swap(t.Context(), now.Record.Seen(), proposal("k")); err != nil || !swapped.Won {
						t.Fatalf("%s: won %v, error %v", name, swapped.Won, err)
					}
				}
				return storetest.None
			})
			if isOwn {
				armed = true
				complete(t, p, "k", time.Hour)
			} else {
				complete(t, p.mem, "k", time.Hour)
				armed = true
				claim(t, p, "k")
			}
			if armed || !swapped.Won {
				t.Fatalf("%s: nobody wrote to the front", name)
			}
			third := newCache(t, p.mem, &nearcache.Options{Now: p.here.Now, Front: p.front, FrontTimeout: time.Minute})
			for i, st := range []store.Store{p.other, third} {
				if f := claim(t, st, "k"); f.Record.State != store.Processing || f.Record.Fence != swapped.Record.Fence {
					t.Errorf("%s, own outcome %v, process %d: a claim finds it %v", name, isOwn, i+2, f.Record.State)
				}
			}
			if err := p.other.Settle(t.Context(), swapped.Record.Lease(), settlement(time.Hour)); err != nil {
				t.Fatal(err)
			}
			last := *p.other
			last.Store = newCache(t, last.calls, &nearcache.Options{Now: p.here.Now, Front: p.front, FrontTimeout: time.Minute})
			last.trip(t, 0, name+": a duplicate of the new outcome", func() { claim(t, last, "k") })
		}
	}
}

// Whatever else is in the front is no answer.
func TestFront_ForeignRecord_IsMiss(t *testing.T) {
	for name, spoil := range map[string]func(f *store.Found){
		"another header":     func(f *store.Found) { lastLine(f).Name = "A" },
		"no header":          func(f *store.Found) { f.Record.Outcome.Header = nil },
		"no meta":            func(f *store.Found) { lastLine(f).Value = "{}" },
		"half a meta":        func(f *store.Found) { l := lastLine(f); l.Value = l.Value[:len(l.Value)/2] },
		"another key":        func(f *store.Found) { f.Record.Key.Value = "other" },
		"a record in flight": func(f *store.Found) { f.Record.State = store.Processing },
		"an expired record":  func(f *store.Found) { f.Record.Expires = f.Now },
		"no sense":           func(f *store.Found) { f.Record.Policy = 9 },
	} {
		p := newPair(t, nearcache.Options{}, nil)
		complete(t, p, "k", time.Hour)
		calls := storetest.NewFault(p.mem, nil)
		c := newCache(t, calls, &nearcache.Options{Now: p.here.Now, Front: spoiltFront{p.front, spoil}, FrontTimeout: time.Minute})
		if f := claim(t, c, "k"); f.Record.State != store.Completed || calls.Calls(storetest.OpClaim) != 1 {
			t.Errorf("%s: %v after %d trips", name, f.Record.State, calls.Calls(storetest.OpClaim))
		}
	}
	// The record of one key at the place of another.
	p := newPair(t, nearcache.Options{}, nil)
	complete(t, p, "other", time.Hour)
	c := newCache(t, p.mem, &nearcache.Options{Now: p.here.Now, Front: crossedFront{p.front}, FrontTimeout: time.Minute})
	if f := claim(t, c, "k"); !f.Won {
		t.Error("another key's outcome is an answer")
	}
}

// lastLine is a copy of the last header line in f, which the test may change.
func lastLine(f *store.Found) *store.Header {
	f.Record.Outcome.Header = slices.Clone(f.Record.Outcome.Header)
	if len(f.Record.Outcome.Header) == 0 {
		return &store.Header{Value: strings.Repeat("x", 40)} // a miss anyway
	}
	return &f.Record.Outcome.Header[len(f.Record.Outcome.Header)-1]
}

func TestSweep_Front_DeletesExpiredRecords(t *testing.T) {
	p := newPair(t, nearcache.Options{MaxBytes: 1}, nil)
	for i := range 30 {
		complete(t, p, fmt.Sprint(i), time.Minute)
	}
	settleAs(t, p.world, "unknown", store.Unknown)
	mine := proposal("not the cache's") // of somebody who uses the front as a store
	mine.Lease = time.Second
	if _, err := p.front.Claim(t.Context(), mine); err != nil {
		t.Fatal(err)
	}
	dead := mine // of a process that died over its shelf
	dead.Key.Operation += "##front"
	if _, err := p.front.Claim(t.Context(), dead); err != nil {
		t.Fatal(err)
	}
	p.pass(time.Hour)
	for range 2 { // the second deletes what the first has cleared
		from, deleted := store.Cursor(""), 0
		for range 1000 {
			res, err := p.Sweep(t.Context(), from, 7)
			if now := get(t, p.mem, "unknown").Now; err != nil || len(res.Lapsed) > 0 || !res.Now.Equal(now) {
				t.Fatalf("%+v, %v; the store's clock is %v", res, err, now)
			}
			deleted += res.Deleted
			if from = res.Next; from == "" {
				break
			}
		}
		if from != "" || deleted != 0 && deleted != 30 {
			t.Errorf("%d deleted, cursor %q", deleted, from)
		}
		p.pass(time.Second)
	}
	left := 0
	for f, err := range p.front.mem.List(t.Context(), store.Filter{}) {
		if left++; err != nil || f.Record.Key != mine.Key {
			t.Errorf("the front still holds %v of %q, %v", f.Record.State, f.Record.Key.Operation, err)
		}
	}
	if left != 1 {
		t.Error("another's record in the front is gone")
	}
	if res, err := p.Sweep(t.Context(), "\x00front x", 7); err == nil {
		t.Errorf("a cursor of nobody's: %+v", res)
	}
	down := newCache(t, p.mem, &nearcache.Options{Front: storetest.NewFault(p.front, func(storetest.Op, int) storetest.Mode { return storetest.Before })})
	if res, err := down.Sweep(t.Context(), "", 10); err != nil || res.Next != "" || res.Now.IsZero() {
		t.Errorf("with a front that is down: %+v, %v", res, err)
	}
}

// frozenFront is a front whose sweeps give no answer.
type frozenFront struct{ *memstore.Store }

func (frozenFront) Sweep(ctx context.Context, _ store.Cursor, _ int) (store.SweepResult, error) {
	<-ctx.Done()
	return store.SweepResult{}, ctx.Err()
}

// While the front hangs, the calls of dead processes are recovered.
func TestSweep_FrontHangs_LapsedRecordsOfStoreAreReturned(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		st := newCache(t, memstore.New(nil), &nearcache.Options{Front: frozenFront{memstore.New(nil)}})
		p := proposal("k")
		p.Lease = time.Second
		if f, err := st.Claim(t.Context(), p); err != nil || !f.Won {
			t.Fatalf("won %v, error %v", f.Won, err)
		}
		time.Sleep(2 * time.Second)
		ctx, cancel := context.WithTimeout(t.Context(), 30*time.Second)
		defer cancel()
		if res, err := st.Sweep(ctx, "", 10); err != nil || len(res.Lapsed) != 1 {
			t.Errorf("%+v, error %v; want the lapsed record", res, err)
		}
	})
}
