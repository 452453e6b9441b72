package sim

import (
	"flag"
	"fmt"
	"os"
	"runtime"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/semel-go/semel/test/internal/figure"
)

var (
	seedFlag  = flag.Uint64("seed", 0, "play this seed alone, and tell its story")
	seedsFlag = flag.Uint64("seeds", 0, "play the seeds from 1 to this")
)

// replay is how a seed is played again.
func replay(seed uint64) string {
	return fmt.Sprintf("replay: go test ./sim -run 'TestCampaign_Seeds_RulesHold$' -seed %d -v", seed)
}

// each plays the seeds from first on, on all cores, while more says so.
func each(t *testing.T, first uint64, s *settings, more func(n uint64) bool, see func(r *result)) {
	var next atomic.Uint64
	var mu sync.Mutex
	var wg sync.WaitGroup
	for range runtime.GOMAXPROCS(0) {
		wg.Go(func() {
			for {
				n := next.Add(1) - 1
				mu.Lock()
				on := more(n)
				mu.Unlock()
				if !on {
					return
				}
				r := play(t, first+n, s)
				mu.Lock()
				see(&r)
				mu.Unlock()
			}
		})
	}
	wg.Wait()
}

// enough is how much a run of the seeds plays: so many seeds at least, and so
// many operations.
func enough() (seeds uint64, ops int64) {
	switch {
	case *seedsFlag > 0:
		return *seedsFlag, 0
	case figure.Long():
		return 200_000, 20_000_000
	case testing.Short():
		return 1000, 0
	}
	return 2000, 0
}

// Whatever becomes of the messages, the processes and the clock: a key has one
// outcome, each answer is that one, and nothing happens twice that must not.
func TestCampaign_Seeds_RulesHold(t *testing.T) {
	if *seedFlag != 0 {
		tell(t, *seedFlag)
		return
	}
	seeds, ops := enough()
	var sum tally
	var failed int64
	began := time.Now()
	each(t, 1, &settings{}, func(n uint64) bool { return (n < seeds || sum.ops < ops) && failed < 5 }, func(r *result) {
		sum.add(&r.tally)
		if len(r.bad) > 0 {
			failed++
			t.Errorf("seed %d:\n\t%s\n%s", r.seed, strings.Join(r.bad, "\n\t"), replay(r.seed))
		}
	})
	took := time.Since(began)
	t.Logf("%v", &sum)
	t.Logf("%v: %.0f operations a second, %.0f seeds a second", took.Round(time.Millisecond), float64(sum.ops)/took.Seconds(), float64(sum.seeds)/took.Seconds())
	report(t, &sum, failed)
	for _, m := range sum.missing() {
		t.Errorf("never reached: %s", m)
	}
}

func report(t *testing.T, sum *tally, failed int64) {
	seeds := fmt.Sprintf("1-%d", sum.seeds)
	effects := sum.paid[allPark] + sum.paid[atomically]
	for _, f := range []figure.Figure{
		{
			Claim: "simulated operations under faults: a key has one outcome, and every answer is that one", Trials: sum.ops, Failures: failed,
			Detail: fmt.Sprintf("%d seeds, %d answers compared, %d runs; a trial is one message to the store or one caller's request", sum.seeds, sum.answers, sum.runs),
		},
		{Claim: "simulated operations under Park: no second effect", Trials: sum.played[allPark], Failures: sum.doubles[allPark], Detail: fmt.Sprintf("%d effects", sum.paid[allPark])},
		{Claim: "simulated operations in transactions: no second effect", Trials: sum.played[atomically], Failures: sum.doubles[atomically], Detail: fmt.Sprintf("%d effects", sum.paid[atomically])},
		{
			Claim: "effects of retried runs that were not the first: what Park and transactions prevent", Trials: sum.paid[allRetry] + sum.paid[mixed],
			Failures: sum.doubles[allRetry] + sum.doubles[mixed], Control: true, Detail: fmt.Sprintf("beside %d effects with none", effects),
		},
	} {
		f.Where, f.Seeds = "simulator", seeds
		figure.Report(t, f)
	}
}

// tell plays one seed and prints its story.
func tell(t *testing.T, seed uint64) {
	r := play(t, seed, &settings{tell: func(line string) { fmt.Fprintln(os.Stdout, line) }})
	t.Logf("seed %d: trace %x, %d operations", seed, r.hash, r.tally.ops)
	for _, b := range r.bad {
		t.Error(b)
	}
}

func TestSeed_RunTwice_SameEvents(t *testing.T) {
	n := uint64(150)
	if figure.Long() {
		n = 5000
	}
	differ := int64(0)
	again := map[uint64]uint64{}
	each(t, 1, &settings{}, func(i uint64) bool { return i < n }, func(r *result) { again[r.seed] = r.hash })
	each(t, 1, &settings{}, func(i uint64) bool { return i < n }, func(r *result) {
		if r.hash != again[r.seed] {
			differ++
			t.Errorf("seed %d: the trace was %x, and then %x", r.seed, again[r.seed], r.hash)
		}
	})
	figure.Report(t, figure.Figure{Claim: "a seed that is played again has the same trace", Where: "simulator", Trials: int64(n), Failures: differ, Seeds: fmt.Sprintf("1-%d", n)})
}
