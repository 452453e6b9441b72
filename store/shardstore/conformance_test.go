package shardstore_test

import (
	"fmt"
	"testing"
	"time"

	"github.com/semel-go/semel/store"
	"github.com/semel-go/semel/store/memstore"
	"github.com/semel-go/semel/store/shardstore"
	"github.com/semel-go/semel/store/storetest"
)

func TestConformance(t *testing.T) {
	for _, n := range []int{1, 2, 3, 16} {
		h := storetest.Harness{
			Open:    func(t testing.TB) store.Store { return newWorld(t, n, 0, nil) },
			Advance: advance,
			Reopen:  reopen,
		}
		t.Run(fmt.Sprint(n), func(t *testing.T) {
			if n > 1 { // fences are counted by each shard, so that a clock that stands still does not make the same
				h.Histories = -1
			}
			storetest.Run(t, h)
		})
		t.Run(fmt.Sprint(n, " with clocks that run"), func(t *testing.T) {
			h.Open = func(t testing.TB) store.Store {
				w := newWorld(t, n, 0, nil)
				w.clock.tick = time.Microsecond
				return w
			}
			storetest.Run(t, h)
		})
	}
}

// reopen is what another process has: the same names, in another order.
func reopen(t testing.TB, s store.Store) store.Store {
	w, _ := store.As[*world](s)
	var shards []shardstore.Shard
	for i := len(w.mems) - 1; i >= 0; i-- {
		shards = append(shards, shardstore.Shard{Name: fmt.Sprint("s", i), Store: w.mems[i]})
	}
	other := *w
	other.Store = newStore(t, shards...)
	return &other
}

// Shards whose clocks differ keep their promises: no two are compared.
func TestConformance_ClocksDiffer(t *testing.T) {
	storetest.Run(t, storetest.Harness{
		Open:    func(t testing.TB) store.Store { return newWorld(t, 3, time.Second, nil) },
		Advance: advance,
		Skew:    3 * time.Second,
	})
}

func TestConformance_RealTime(t *testing.T) {
	storetest.Run(t, storetest.Harness{
		Open: func(t testing.TB) store.Store {
			return newStore(t, shardstore.Shard{Name: "a", Store: memstore.New(nil)}, shardstore.Shard{Name: "b", Store: memstore.New(nil)})
		},
	})
}

// A network that sends twice is not seen.
func TestConformance_NetworkSendsTwice(t *testing.T) {
	storetest.Run(t, storetest.Harness{
		Open: func(t testing.TB) store.Store {
			w := newWorld(t, 3, 0, func(_ int, op storetest.Op, _ int) storetest.Mode {
				if op == storetest.OpSweep { // its answer counts what it did
					return storetest.None
				}
				return storetest.Twice
			})
			w.clock.tick = time.Microsecond
			return w
		},
		Advance: advance,
	})
}
