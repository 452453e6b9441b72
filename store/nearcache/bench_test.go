package nearcache_test

import (
	"fmt"
	"slices"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/semel-go/semel/store"
	"github.com/semel-go/semel/store/memstore"
	"github.com/semel-go/semel/store/nearcache"
	"github.com/semel-go/semel/store/storetest"
)

func BenchmarkStore(b *testing.B) {
	storetest.Bench(b, storetest.Harness{Open: func(testing.TB) store.Store { return newCache(b, memstore.New(nil), nil) }})
}

var benchKey atomic.Int64

// round is how many operations a second st finishes with n goroutines, each key
// with so many duplicates.
func round(b *testing.B, st store.Store, n, duplicates int, d time.Duration) float64 {
	var done atomic.Int64
	var all sync.WaitGroup
	start := time.Now()
	for range n {
		all.Go(func() {
			for time.Since(start) < d {
				p := proposal(fmt.Sprintf("order-%016x", benchKey.Add(1)))
				f, err := st.Claim(b.Context(), p)
				if err == nil {
					err = st.Settle(b.Context(), f.Record.Lease(), settlement(time.Hour))
				}
				for range duplicates {
					if err == nil {
						f, err = st.Claim(b.Context(), p)
					}
				}
				if err != nil {
					b.Error(err)
					return
				}
				done.Add(int64(1 + duplicates))
			}
		})
	}
	all.Wait()
	return float64(done.Load()) / time.Since(start).Seconds()
}

// BenchmarkAgainstTheStoreAlone compares the cache over the memory store with the
// memory store alone: the worst case, because there is no round trip to save. Medians of
// interleaved rounds, in one run.
func BenchmarkAgainstTheStoreAlone(b *testing.B) {
	const rounds = 9
	for _, n := range []int{1, 16} {
		for _, duplicates := range []int{0, 1, 9} {
			b.Run(fmt.Sprintf("goroutines=%d/duplicates=%d", n, duplicates), func(b *testing.B) {
				var with, without []float64
				for b.Loop() {
					for range rounds { // fresh ones, so that neither grows with the rounds
						without = append(without, round(b, memstore.New(nil), n, duplicates, 50*time.Millisecond))
						with = append(with, round(b, newCache(b, memstore.New(nil), &nearcache.Options{}), n, duplicates, 50*time.Millisecond))
					}
				}
				slices.Sort(with)
				slices.Sort(without)
				a, c := without[len(without)/2], with[len(with)/2]
				b.ReportMetric(a, "alone/s")
				b.ReportMetric(c, "cached/s")
				b.ReportMetric(c/a, "ratio")
				b.ReportMetric(0, "ns/op")
			})
		}
	}
}
