package nearcache_test

import (
	"testing"
	"time"

	"github.com/semel-go/semel/store"
	"github.com/semel-go/semel/store/memstore"
	"github.com/semel-go/semel/store/nearcache"
	"github.com/semel-go/semel/store/storetest"
)

// After a swap the front keeps the earlier record out for as long as any process may
// write it, also if a record that was written since has expired there, or if its
// writer died.
func TestSwap_LaterRecordIsGone_FrontKeepsEarlierOut(t *testing.T) {
	for name, later := range map[string]func(t *testing.T, p *pair, swapped store.Found, dies *bool){
		"it has expired": func(t *testing.T, p *pair, swapped store.Found, dies *bool) {
			if err := p.other.Settle(t.Context(), swapped.Record.Lease(), settlement(5*time.Second)); err != nil {
				t.Fatal(err)
			}
			p.pass(10 * time.Second)
			sweepTwice(t, p)
		},
		"its writer died": func(t *testing.T, p *pair, swapped store.Found, dies *bool) {
			*dies = true // the front's settlement of the new outcome does not arrive
			if err := p.other.Settle(t.Context(), swapped.Record.Lease(), settlement(5*time.Second)); err != nil {
				t.Fatal(err)
			}
			*dies = false
			p.pass(20 * time.Second)
		},
		"its writer died, and a sweep found it": func(t *testing.T, p *pair, swapped store.Found, dies *bool) {
			*dies = true
			if err := p.other.Settle(t.Context(), swapped.Record.Lease(), settlement(5*time.Second)); err != nil {
				t.Fatal(err)
			}
			*dies = false
			p.pass(20 * time.Second)
			sweepTwice(t, p)
		},
	} {
		t.Run(name, func(t *testing.T) {
			var p *pair
			var swapped store.Found
			armed, dies := false, false
			p = newPair(t, nearcache.Options{MaxBytes: 1 << 20}, func(o storetest.Op, _ int) storetest.Mode {
				switch {
				case armed && o == storetest.OpClaim: // the first process is about to write the earlier record
					armed = false
					now := get(t, p.mem, "k")
					var err error
					if swapped, err = p.other.Swap(t.Context(), now.Record.Seen(), proposal("k")); err != nil || !swapped.Won {
						t.Fatalf("won %v, error %v", swapped.Won, err)
					}
					later(t, p, swapped, &dies)
				case dies && o == storetest.OpSettle:
					return storetest.Before
				}
				return storetest.None
			})
			complete(t, p.mem, "k", time.Hour)
			armed = true
			claim(t, p, "k")
			if armed || !swapped.Won {
				t.Fatal("nobody wrote to the front")
			}
			third := newCache(t, p.mem, &nearcache.Options{Now: p.here.Now, Front: p.front, FrontTimeout: time.Minute})
			if f := claim(t, third, "k"); f.Record.Fence < swapped.Record.Fence {
				t.Errorf("another process gets fence %d from the front, want at least %d", f.Record.Fence, swapped.Record.Fence)
			}
		})
	}
}

// sweepTwice sweeps the store and the front: the second pass deletes what the first
// has released.
func sweepTwice(t *testing.T, p *pair) {
	for range 2 {
		for cursor, more := store.Cursor(""), true; more; more = cursor != "" {
			res, err := p.Sweep(t.Context(), cursor, 100)
			if err != nil {
				t.Fatal(err)
			}
			cursor = res.Next
		}
		p.pass(time.Second)
	}
}

// A record that this process has received goes into the front with the next claim of any
// process, so that the one after it is a hit.
func TestReceive_Record_IsKeptInFront(t *testing.T) {
	t.Parallel()
	old, mem, front := memstore.New(nil), memstore.New(nil), memstore.New(nil)
	complete(t, old, "k", time.Hour)
	o := &nearcache.Options{Front: front, FrontTimeout: time.Minute}
	receiver, ok := store.As[store.Receiver](store.Store(newCache(t, mem, o)))
	if !ok {
		t.Fatal("the cache receives no records")
	}
	if f, err := receiver.Receive(t.Context(), get(t, old, "k").Record, nil); err != nil || !f.Won {
		t.Fatalf("Receive: won %v, error %v", f.Won, err)
	}
	claim(t, newCache(t, mem, o), "k")
	calls := storetest.NewFault(mem, nil)
	if f := claim(t, newCache(t, calls, o), "k"); f.Won || string(f.Record.Outcome.Body) != "kept" || calls.Calls(storetest.OpClaim) != 0 {
		t.Errorf("a later process: won %v, %d claims reached the store, want a hit of the front", f.Won, calls.Calls(storetest.OpClaim))
	}
}
