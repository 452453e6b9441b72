package pgstore

import (
	"context"
	"fmt"
	"slices"
	"sync"
	"testing"
	"time"
)

// competitor is one way to run an operation once.
type competitor struct {
	name  string
	floor float64 // of its rate, in units of the first; 0: none
	do    func(ctx context.Context, key string) error
	// instead of do, for libraries with their own clients
	run func(t testing.TB, goroutines int, d time.Duration) (ops int, took []time.Duration)
}

// loop has g goroutines run operations for d; of dups each, one is for a new
// key and the others repeat it.
func (c *competitor) loop(t testing.TB, prefix string, g, dups int, d time.Duration) (ops int, took []time.Duration) {
	t.Helper()
	if c.run != nil {
		return c.run(t, g, d)
	}
	ctx, cancel := context.WithTimeout(t.Context(), d)
	defer cancel()
	each := make([][]time.Duration, g)
	var all sync.WaitGroup
	for w := range g {
		all.Go(func() {
			for i := 0; ctx.Err() == nil; i++ {
				at := time.Now()
				if err := c.do(context.Background(), fmt.Sprint(prefix, "/", w, "/", i/dups)); err != nil {
					t.Errorf("%s: %v", c.name, err)
					return
				}
				each[w] = append(each[w], time.Since(at))
			}
		})
	}
	all.Wait()
	took = slices.Concat(each...)
	return len(took), took
}

// versus runs contenders in turns, and reports each, and its rate as the
// median of the ratios to the first in the same round. Rounds are many and
// short, because a machine is not equally fast for long, and every other one is
// in reverse.
func (m *meter) versus(t *testing.T, what string, g, dups int, cs ...competitor) {
	t.Helper()
	const rounds, d = 15, 300 * time.Millisecond
	costs := make([][]*cost, len(cs))
	for round := range rounds + 1 {
		for i := range cs {
			if round%2 == 1 {
				i = len(cs) - 1 - i
			}
			c := m.measure(t, func() (int, []time.Duration) {
				return cs[i].loop(t, fmt.Sprint(what, g, cs[i].name, round), g, dups, d)
			})
			if round > 0 { // before that, connections are opened, and statements prepared
				costs[i] = append(costs[i], c)
			}
		}
	}
	for i := range cs {
		var ratios []float64
		for round := range rounds {
			ratios = append(ratios, costs[i][round].rate()/costs[0][round].rate())
		}
		slices.Sort(ratios)
		ratio := ratios[rounds/2]
		verdict := ""
		if f := cs[i].floor; f > 0 {
			verdict = fmt.Sprintf("  floor %.2f held", f)
			if ratio < f {
				verdict = fmt.Sprintf("  floor %.2f MISSED", f)
			}
		}
		slices.SortFunc(costs[i], func(a, b *cost) int { return int(a.rate() - b.rate()) })
		t.Logf("%-12s %3d goroutines  %-8s %5.2fx (%.2f to %.2f)  %v%s", what, g, cs[i].name, ratio, ratios[0], ratios[rounds-1], costs[i][rounds/2], verdict)
	}
}
