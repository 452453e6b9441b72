package pgstore

import (
	"context"
	"fmt"
	"slices"
	"sync"
	"testing"
	"time"

	"github.com/semel-go/semel/sweep"
)

// TestScale_SweepDuringTraffic measures claims while a sweep removes a million
// expired rows from between as many others, and for a minute before and after it,
// for in a few seconds the p99 of a machine varies more than a sweep changes it:
// SEMEL_TEST_SWEEP=2000 for 2000 claims and settlements a second.
func TestScale_SweepDuringTraffic(t *testing.T) {
	t.Parallel()
	rate := scaleOf(t, "SEMEL_TEST_SWEEP", "how many claims a second there are beside the sweep")
	const idle = time.Minute
	url := scaleURL(t)
	s := filled(t, url, 2*million, 2)
	mustExec(t, s.ownPool, "COMMENT ON SCHEMA "+s.quoted()+" IS NULL") // it is used up
	mustExec(t, s.ownPool, "CHECKPOINT")
	traffic := &traffic{s: s, rate: rate, run: time.Now().UnixNano()}
	traffic.during(t, "warm", func() { <-time.After(3 * time.Second) })
	before := traffic.during(t, "before", func() { <-time.After(idle) })
	var stats sweep.Stats
	var err error
	start := time.Now()
	beside := traffic.during(t, "beside", func() { stats, err = sweep.Once(t.Context(), s, nil) })
	took := time.Since(start)
	if err != nil || stats.Deleted != million {
		t.Fatalf("%d deleted, error %v", stats.Deleted, err)
	}
	after := traffic.during(t, "after", func() { <-time.After(idle) })
	t.Logf("a sweep of %d rows from %d beside %d claims a second took %v", stats.Deleted, 2*million, rate, took.Round(10*time.Millisecond))
	for _, is := range []struct {
		name string
		took []time.Duration
	}{{"before", before}, {"beside", beside}, {"after", after}} {
		p50, p99 := is.took[len(is.took)/2], is.took[len(is.took)*99/100]
		t.Logf("claims %-7s %6d: p50 %8v (%.2fx), p99 %8v (%.2fx), longest %v", is.name, len(is.took),
			p50.Round(time.Microsecond), float64(p50)/float64(before[len(before)/2]),
			p99.Round(time.Microsecond), float64(p99)/float64(before[len(before)*99/100]), is.took[len(is.took)-1].Round(time.Microsecond))
	}
}

// traffic claims and settles new keys at a rate.
type traffic struct {
	s    *Store
	rate int
	run  int64
}

// during has traffic for as long as fn runs, and returns how long the claims
// took, the shortest first.
func (f *traffic) during(t *testing.T, name string, fn func()) []time.Duration {
	t.Helper()
	const workers = 32
	ctx, cancel := context.WithCancel(t.Context())
	each := make([][]time.Duration, workers)
	var all sync.WaitGroup
	for w := range workers {
		all.Go(func() {
			every := time.Second * workers / time.Duration(f.rate)
			<-time.After(every * time.Duration(w) / workers) // not all at once
			tick := time.NewTicker(every)
			defer tick.Stop()
			for i := 0; ; i++ {
				select {
				case <-tick.C:
				case <-ctx.Done():
					return
				}
				p := proposal(fmt.Sprint(f.run, name, w, "/", i))
				at := time.Now()
				found, err := f.s.Claim(context.Background(), p)
				each[w] = append(each[w], time.Since(at))
				if err == nil {
					err = f.s.Settle(context.Background(), found.Record.Lease(), completion(result))
				}
				if err != nil {
					t.Error(err)
					return
				}
			}
		})
	}
	fn()
	cancel()
	all.Wait()
	return slices.Sorted(slices.Values(slices.Concat(each...)))
}
