package storetest

import (
	"fmt"
	"math/rand/v2"
	"runtime"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"
)

// manyHistories plays n random histories on all processors.
func manyHistories(t *testing.T, n, steps int, fresh func() *arena) {
	t.Helper()
	var next atomic.Int64
	var mu sync.Mutex
	var sum tally
	var wg sync.WaitGroup
	start := rand.Uint64()
	for range runtime.GOMAXPROCS(0) {
		wg.Go(func() {
			a := fresh()
			for i := next.Add(1); i <= int64(n) && !t.Failed(); i = next.Add(1) {
				seed := mix(start + uint64(i))
				list := script(seed, steps)
				if m := a.play(t.Context(), fmt.Sprint(i), list); m != nil {
					t.Error(a.report(t.Context(), seed, list, m, fresh))
					return
				}
				if err := a.clear(t.Context()); err != nil {
					t.Error(err)
					return
				}
			}
			mu.Lock()
			defer mu.Unlock()
			sum.add(&a.tally)
		})
	}
	wg.Wait()
	t.Logf("%d histories of %d steps met: %v", n, steps, &sum)
	failures := 0
	if t.Failed() {
		failures = 1 // it ends at the first
	}
	t.Logf(`evidence: {"claim":"a history of %d steps ends as the model says","where":"memory store","trials":%d,"failures":%d}`, steps, n, failures)
	if names := sum.missing(); names != nil && !t.Failed() {
		t.Errorf("never met: %s", strings.Join(names, ", "))
	}
}

// mutantArena puts a mutant beside the memory store.
func mutantArena(mu mutant) *arena {
	mem, mod := manualMemory(), manualModel()
	m, _ := mod.Store.(*model)
	return &arena{
		sides: []*side{{name: "memory store", st: mem.Store}, {name: "mutant", st: mu.make(m)}},
		times: exactTimes,
		like:  comparison{times: true, fences: true},
		advance: func(d time.Duration) {
			mem.micros.Add(d.Microseconds())
			mod.micros.Add(d.Microseconds())
		},
	}
}

// beyond are the mutants that no history can meet: they are about what a
// history does not contain, or about two calls at once.
var beyond = map[string]string{
	"a lost race goes on as if it were won":         "one call at a time",
	"nobody's claim is everybody's":                 "each has an owner",
	"checks the claim and then settles":             "one call at a time",
	"an error that is no text fails the settlement": "errors are plain text",
	"blanks of headers are trimmed":                 "headers are plain",
	"headers are kept as JSON text":                 "headers are plain",
	"bodies are cut at 64 KiB":                      "bodies are short",
	"codes are kept without a sign":                 "codes are usual",
	"only a hundred are renewed":                    "batches are small",
	"a lease that comes twice is lost":              "may come, and seldom does",
	"each of two sweeps counts what either deleted": "one sweep at a time",
	"skips a record at each step":                   "depends on the names of keys",
}

func TestCampaign_HistoriesOfMutants_Caught(t *testing.T) {
	n := uint64(1500)
	if raceEnabled || testing.Short() {
		n = 300
	}
	caught, missed := 0, 0
	for _, mu := range allMutants() {
		switch mu.topic {
		case "list", "context", "tx", "keys", "record", "journal", "former owners", "timers", "erase", "wait":
			continue
		}
		if _, ok := beyond[mu.name]; ok {
			continue
		}
		if why := catch(t, mu, n); why != "" {
			caught++
			continue
		}
		missed++
		if n > 1000 {
			t.Errorf("%s: %d histories do not meet %q", mu.topic, n, mu.name)
		}
	}
	if caught < 20*missed {
		t.Errorf("%d histories caught %d mutants and missed %d", n, caught, missed)
	}
	t.Logf("%d histories caught %d mutants and missed %d", n, caught, missed)
}

// catch plays up to n histories until one goes wrong.
func catch(t *testing.T, mu mutant, n uint64) string {
	t.Helper()
	a := mutantArena(mu)
	for seed := range n {
		if m := a.play(t.Context(), fmt.Sprint(seed), script(seed, historySteps)); m != nil {
			return m.why
		}
		if err := a.clear(t.Context()); err != nil {
			return err.Error()
		}
	}
	return ""
}
