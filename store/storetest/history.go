package storetest

import (
	"fmt"
	"math/rand/v2"
	"os"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/semel-go/semel/store"
	"github.com/semel-go/semel/store/memstore"
)

// historySteps is the length of a history.
const historySteps = 60

// History plays the random history of seed on a store that h opens and on the
// memory store. After each step it compares the answers and the records, and
// checks the rules of the protocol. On a mismatch it ends the test with the steps
// that lead to it. [Run] does the same with random seeds and prints the seed of a
// failure, so that History can play it again.
//
// If h can set the store's clock, and the clock stands still between two calls,
// History compares all fields. If not, it compares times with the record's
// Updated, and only the order of fences.
func History(t testing.TB, h Harness, seed uint64, steps int) {
	t.Helper()
	a := newArena(t, &h)
	list := script(seed, steps)
	if m := a.play(t.Context(), fmt.Sprintf("%x", seed), list); m != nil {
		t.Fatal(a.report(t.Context(), seed, list, m, func() *arena { return newArena(t, &h) }))
	}
}

// newArena opens a store and puts the memory store beside it.
func newArena(t testing.TB, h *Harness) *arena {
	t.Helper()
	st := h.Open(t)
	a := &arena{times: longTimes(h.Skew)}
	f, err := st.Claim(t.Context(), proposal(store.Key{Operation: "storetest clock", Value: "start"}, store.Started))
	if err != nil {
		t.Fatalf("Claim: %v", err)
	}
	c := clock{now: f.Now}
	switch {
	case h.Advance == nil && h.Skew == 0:
		a.times, a.settle = shortTimes, time.Second
	case h.Advance != nil && h.Skew == 0 && stands(t, st):
		a.times, a.like = exactTimes, comparison{times: true, fences: true}
		c.stands = true
	}
	if h.Advance != nil {
		a.advance = func(d time.Duration) {
			h.Advance(t, st, d)
			c.advance(d)
		}
	}
	oracle := memstore.New(&memstore.Options{Now: c.read})
	a.sides = []*side{{name: "memory store", st: oracle}, {name: "store", st: st}}
	return a
}

// clock is the memory store's. It stands still or runs like the other store's
// clock, and moves together with it.
type clock struct {
	mu     sync.Mutex
	stands bool
	now    time.Time
	moved  time.Duration
}

func (c *clock) read() time.Time {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.stands {
		return c.now.Add(c.moved)
	}
	return time.Now().Add(c.moved)
}

func (c *clock) advance(d time.Duration) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.moved += d
}

// exactTimes meet each other to the microsecond again and again.
var exactTimes = times{
	leases: []time.Duration{time.Microsecond, time.Second, 5 * time.Second, 30 * time.Second},
	waits:  []time.Duration{0, 0, time.Second, 5 * time.Second},
	keeps:  []time.Duration{0, 5 * time.Second, 10 * time.Second, 90 * time.Second},
	moves: []time.Duration{
		time.Microsecond, time.Second, time.Second, 4 * time.Second, 5*time.Second - time.Microsecond, 5 * time.Second,
		30 * time.Second, 2 * time.Minute, -time.Second, -40 * time.Second,
	},
	exact: true,
}

// shortTimes are for a clock that only runs: over at once, or not at all.
var shortTimes = times{
	leases: []time.Duration{time.Microsecond, long},
	waits:  []time.Duration{0, time.Microsecond, long},
	keeps:  []time.Duration{time.Microsecond, long},
}

// longTimes are for a clock that runs and can be moved: none ends near a
// moment that a history comes by. Without a way to move it, none ends.
func longTimes(skew time.Duration) times {
	u := max(10*time.Minute, 8*skew)
	return times{
		leases: []time.Duration{u / 2, u + u/2, 3*u + u/2},
		waits:  []time.Duration{u / 2, u + u/2},
		keeps:  []time.Duration{u / 2, 2*u + u/2, 6*u + u/2},
		moves:  []time.Duration{u, u, u, 2 * u, 4 * u, 8 * u, -u},
	}
}

// runHistories plays as many histories as h says, in a few stores at once.
func runHistories(t *testing.T, h *Harness) {
	n := h.Histories
	if n == 0 {
		switch {
		case os.Getenv("SEMEL_EVIDENCE") == "1":
			n = 1000
		case testing.Short():
			n = 20
		default:
			n = 200
		}
	}
	const lanes = 4
	var mu sync.Mutex
	var sum tally
	played := 0
	t.Cleanup(func() {
		t.Logf("%d histories of %d steps met: %v", played, historySteps, &sum)
		if played < 200 || t.Failed() {
			return
		}
		var but []sight
		if h.Advance == nil {
			but = append(but, sawClockBack)
		}
		if names := sum.missing(but...); names != nil && (h.Advance != nil || h.Skew == 0) {
			t.Errorf("%d histories never met: %s", played, strings.Join(names, ", "))
		}
	})
	for lane := range min(lanes, max(n, 0)) {
		t.Run(fmt.Sprint(lane+1), func(t *testing.T) {
			t.Parallel()
			a := newArena(t, h)
			for i := lane; i < n; i += lanes {
				seed := rand.Uint64()
				list := script(seed, historySteps)
				m := a.play(t.Context(), fmt.Sprintf("%x", seed), list)
				if m != nil {
					t.Fatal(a.report(t.Context(), seed, list, m, func() *arena { return newArena(t, h) }))
				}
				mu.Lock()
				sum.add(&a.tally)
				played++
				mu.Unlock()
				a.tally = tally{}
				if h.Skew > 0 { // an end cannot be made to come at once
					a = newArena(t, h)
				} else if err := a.clear(t.Context()); err != nil {
					t.Fatalf("after the history %#x: %v", seed, err)
				}
			}
		})
	}
}
