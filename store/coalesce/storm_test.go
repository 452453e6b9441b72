package coalesce_test

import (
	"context"
	"math/rand/v2"
	"runtime"
	"strconv"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/semel-go/semel/store/coalesce"
)

// Many callers, who come and go: each request is flushed at most once, each
// caller that stays gets its own answer, conflicting requests never meet, and
// nothing is left behind.
func TestStorm(t *testing.T) {
	const callers, each = 64, 200
	for _, o := range []*coalesce.Options[int]{nil, {Flushers: 3, MaxBatch: 7}, {Flushers: 2, Conflict: lastDigit}} {
		before := runtime.NumGoroutine()
		var flushed [callers * each]atomic.Int32
		var busy [10]atomic.Int32
		l := coalesce.New(func(_ context.Context, batch []*item) {
			for _, it := range batch {
				flushed[it.Req].Add(1)
				it.Res = strconv.Itoa(it.Req)
				if o != nil && o.Conflict != nil && busy[it.Req%10].Add(1) > 1 {
					t.Error("conflicting requests met")
				}
			}
			runtime.Gosched()
			for _, it := range batch {
				busy[it.Req%10].Add(-1)
			}
		}, o)
		var all sync.WaitGroup
		for c := range callers {
			all.Go(func() {
				for i := range each {
					req := c*each + i
					ctx, cancel := context.WithCancel(t.Context())
					if rand.IntN(4) == 0 {
						go cancel()
					}
					do := l.Do
					if rand.IntN(8) == 0 {
						do = l.Urgent
					}
					res, err := do(ctx, req)
					if n := flushed[req].Load(); n > 1 || err == nil && (n != 1 || res != strconv.Itoa(req)) {
						t.Errorf("request %d: flushed %d times, got %q, %v", req, n, res, err)
					}
					cancel()
				}
			})
		}
		all.Wait()
		l.Close()
		for deadline := time.Now().Add(time.Minute); runtime.NumGoroutine() > before; runtime.Gosched() {
			if time.Now().After(deadline) {
				t.Fatalf("%d goroutines left", runtime.NumGoroutine()-before)
			}
		}
	}
}

func BenchmarkLone(b *testing.B) {
	l := coalesce.New(func(context.Context, []*item) {}, nil)
	b.ReportAllocs()
	for b.Loop() {
		_, _ = l.Do(b.Context(), 1)
	}
}

// BenchmarkBusy is 64 callers of a flush that takes 20 µs. It reports the cost
// of a request beside that, and how many requests share a flush.
func BenchmarkBusy(b *testing.B) {
	for _, conflict := range []func(*int) uint64{nil, func(req *int) uint64 { return uint64(*req) }} {
		b.Run("conflicts="+strconv.FormatBool(conflict != nil), func(b *testing.B) {
			var flushes, reqs atomic.Int64
			l := coalesce.New(func(_ context.Context, batch []*item) {
				flushes.Add(1)
				for end := time.Now().Add(20 * time.Microsecond); time.Now().Before(end); {
				}
			}, &coalesce.Options[int]{Conflict: conflict})
			b.ReportAllocs()
			b.SetParallelism(64 / runtime.GOMAXPROCS(0))
			b.RunParallel(func(pb *testing.PB) {
				for pb.Next() {
					_, _ = l.Do(b.Context(), int(reqs.Add(1)))
				}
			})
			b.ReportMetric(float64(reqs.Load())/float64(flushes.Load()), "reqs/flush")
		})
	}
}
