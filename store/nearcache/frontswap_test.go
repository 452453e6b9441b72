package nearcache_test

import (
	"testing"
	"time"

	"github.com/semel-go/semel/store"
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
