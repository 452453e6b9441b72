package sim

import (
	"fmt"
	"os"
	"runtime"
	"slices"
	"strings"
	"testing"
	"time"
)

// sample is what the process holds between two batches of seeds.
type sample struct {
	heap       uint64 // bytes in use after a collection
	goroutines int
}

func take() sample {
	runtime.GC()
	runtime.GC() // frees the memory that finalizers have released
	var m runtime.MemStats
	runtime.ReadMemStats(&m)
	return sample{m.HeapAlloc, runtime.NumGoroutine()}
}

// How much more memory the last quarter may hold than the second, because of the
// collector and the test's own log.
const (
	moreHeap       = 1.10
	spareHeap      = 1 << 20
	moreGoroutines = 4
)

// grown says what has grown between the second quarter and the last, by their
// medians.
func grown(all []sample) string {
	q := len(all) / 4
	if q == 0 {
		return ""
	}
	median := func(some []sample, of func(sample) float64) float64 {
		var v []float64
		for _, s := range some {
			v = append(v, of(s))
		}
		slices.Sort(v)
		return v[len(v)/2]
	}
	second, last := all[q:2*q], all[len(all)-q:]
	heap := func(s sample) float64 { return float64(s.heap) }
	count := func(s sample) float64 { return float64(s.goroutines) }
	var what []string
	if a, b := median(second, heap), median(last, heap); b > a*moreHeap+spareHeap {
		what = append(what, fmt.Sprintf("the heap has grown from %.0f to %.0f bytes", a, b))
	}
	if a, b := median(second, count), median(last, count); b > a+moreGoroutines {
		what = append(what, fmt.Sprintf("goroutines have grown from %.0f to %.0f", a, b))
	}
	return strings.Join(what, "; ")
}

// SEMEL_SOAK=1h plays new seeds for an hour.
func TestSoak(t *testing.T) {
	d, err := time.ParseDuration(os.Getenv("SEMEL_SOAK"))
	if err != nil {
		t.Skip("SEMEL_SOAK is not set to a duration")
	}
	began := time.Now()
	first := uint64(began.UnixNano())
	fmt.Fprintf(os.Stderr, "soak: seeds from %d on for %v\n", first, d)
	var sum tally
	var all []sample
	failed, said := 0, began
	for time.Since(began) < d && failed < 5 {
		until := time.Now().Add(min(d/40, time.Minute))
		each(t, first+uint64(sum.seeds), &settings{}, func(uint64) bool { return time.Now().Before(until) && failed < 5 }, func(r *result) {
			sum.add(&r.tally)
			if len(r.bad) > 0 {
				failed++
				t.Errorf("seed %d:\n\t%s\n%s", r.seed, strings.Join(r.bad, "\n\t"), replay(r.seed))
			}
		})
		s := take()
		all = append(all, s)
		if time.Since(said) >= time.Minute || time.Since(began) >= d {
			said = time.Now()
			fmt.Fprintf(os.Stderr, "soak: %v: %d seeds, %d operations, heap %d KiB, %d goroutines\n",
				time.Since(began).Round(time.Second), sum.seeds, sum.ops, s.heap>>10, s.goroutines)
		}
	}
	t.Logf("%v", &sum)
	report(t, &sum, int64(failed))
	if what := grown(all); what != "" {
		t.Error(what)
	}
	for _, m := range sum.missing() {
		t.Errorf("never reached: %s", m)
	}
}

func TestSoak_Growth_Seen(t *testing.T) {
	flat, heap, routines := make([]sample, 40), make([]sample, 40), make([]sample, 40)
	for i := range flat {
		flat[i] = sample{uint64(20<<20 + i%3<<10), 5 + i%2}
		heap[i] = sample{uint64(20<<20 + i<<18), 5}
		routines[i] = sample{20 << 20, 5 + i/2}
	}
	if g := grown(flat); g != "" {
		t.Errorf("flat: %s", g)
	}
	for name, all := range map[string][]sample{"heap": heap, "goroutines": routines} {
		if !strings.Contains(grown(all), name) {
			t.Errorf("%s: growth was not seen: %q", name, grown(all))
		}
	}
}
