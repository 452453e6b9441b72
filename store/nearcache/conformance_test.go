package nearcache_test

import (
	"errors"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/semel-go/semel/store"
	"github.com/semel-go/semel/store/memstore"
	"github.com/semel-go/semel/store/nearcache"
	"github.com/semel-go/semel/store/storetest"
)

func isInjected(err error) bool { return errors.Is(err, storetest.ErrInjected) }

// advance moves both clocks. If d is negative it sets back only the store's clock,
// and empties the cache, because the suite compares Now with that clock.
func advance(_ testing.TB, s store.Store, d time.Duration) {
	w, _ := store.As[*world](s)
	w.there.Advance(d)
	if d > 0 {
		w.here.Advance(d)
	} else {
		w.Purge()
	}
}

func TestConformance(t *testing.T) {
	for name, o := range map[string]*nearcache.Options{
		"as it comes":          nil,
		"without a skew":       {Skew: 1},
		"a short age":          {MaxAge: 5 * time.Second, Skew: 1},
		"room for a few":       {MaxBytes: 4 << 10, Skew: 1},
		"room for none":        {MaxBytes: 1},
		"more age than record": {MaxAge: time.Hour, Skew: 1},
	} {
		t.Run(name, func(t *testing.T) {
			var mu sync.Mutex
			var opened []*world
			t.Cleanup(func() { // when all parallel subtests have ended
				hits := uint64(0)
				for _, w := range opened {
					hits += w.Stats().Hits
					w.Check()
				}
				if t.Logf("%d hits", hits); (hits < 200) != (name == "room for none") {
					t.Errorf("the suite had %d hits", hits)
				}
			})
			storetest.Run(t, storetest.Harness{
				Open: func(t testing.TB) store.Store {
					w := newWorld(t, o)
					mu.Lock()
					defer mu.Unlock()
					opened = append(opened, w)
					return w
				},
				Advance: advance,
				Reopen:  func(_ testing.TB, s store.Store) store.Store { return s },
			})
		})
	}
}

func TestConformance_RealTime(t *testing.T) {
	storetest.Run(t, storetest.Harness{
		Open: func(t testing.TB) store.Store {
			return newCache(t, memstore.New(nil), &nearcache.Options{Skew: 1})
		},
	})
}

func TestConformance_HashesCollide(t *testing.T) {
	storetest.Run(t, storetest.Harness{
		Open: func(t testing.TB) store.Store {
			w := newWorld(t, &nearcache.Options{Skew: 1})
			w.Collide(2)
			return w
		},
		Advance: advance,
	})
}

// Calls that were lost, whose replies were lost, or that were sent twice, and
// sent again by their callers, leave nothing in the cache that the store does
// not say.
func TestConformance_BadNetwork(t *testing.T) {
	var opened atomic.Uint64
	open := func(t testing.TB) store.Store {
		chance := storetest.Chance(opened.Add(1), 0.4, storetest.Before, storetest.LostReply, storetest.LostReply, storetest.Twice)
		return patient{newWorldBehind(t, &nearcache.Options{Skew: 1}, func(op storetest.Op, n int) storetest.Mode {
			if op == storetest.OpSweep { // its answer counts what it did
				return storetest.None
			}
			return chance(op, n)
		})}
	}
	storetest.Run(t, storetest.Harness{Open: open, Advance: advance})
}
