package dboscompare

import (
	"encoding/json"
	"fmt"
	"os"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/semel-go/semel/store/pgstore/pgtest"
)

const (
	rounds = 3
	steps  = 10 // of a saga
)

// TestSaga_ComparedWithDBOS measures, with a PostgreSQL server of its own that syncs each
// commit: SEMEL_TEST_COMPARE=1. Nothing here is judged, because that depends on the
// machine; ratios are of contenders that take turns.
func TestSaga_ComparedWithDBOS(t *testing.T) {
	if os.Getenv("SEMEL_TEST_COMPARE") != "1" {
		t.Skip("a measurement: set SEMEL_TEST_COMPARE=1")
	}
	server := pgtest.Start(t, pgtest.Durable...)
	for _, delay := range []time.Duration{0, time.Millisecond} {
		t.Run(fmt.Sprintf("delay=%v", delay), func(t *testing.T) { // of each round trip
			b := &bench{dataDir: server.DataDir(), prefix: t.Name()}
			ours, theirs := semelSaga(t, server.URL(), delay, semelConnections), dbosWorkflow(t, server.URL(), delay, dbosConnections)
			b.versus(t, 1, 100, ours, theirs)
			b.versus(t, 16, 480, ours, theirs)
			b.versus(t, 64, 1280, ours, theirs)
			b.versus(t, 64, 1280, semelSaga(t, server.URL(), delay, 64), dbosWorkflow(t, server.URL(), delay, 64))
		})
	}
}

type bench struct {
	dataDir string // of the server
	prefix  string // of the ids of sagas
	next    int    // number of a saga
}

// figures are what was measured of a contender, one of each round.
type figures struct{ rates, ratios, costs, costRatios []float64 }

// versus measures contenders in turns, and logs each round and the medians.
func (b *bench) versus(t *testing.T, once, sagas int, contenders ...contender) {
	all := make([]figures, len(contenders))
	for round := range rounds {
		rate, cost := make([]float64, len(contenders)), make([]float64, len(contenders))
		for i := range contenders {
			i = (i + round) % len(contenders) // each is the first sometimes
			rate[i], cost[i] = b.measure(t, contenders[i], once, sagas)
		}
		for i := range contenders {
			f := &all[i]
			f.rates, f.ratios = append(f.rates, rate[i]), append(f.ratios, rate[0]/rate[i])
			f.costs, f.costRatios = append(f.costs, cost[i]), append(f.costRatios, cost[i]/cost[0])
		}
	}
	for i, f := range all {
		t.Logf("%d at once: %s: %.0f steps/s (median of %.0f), processor time of a step %.2f ms (median of %.2f)", once, contenders[i].name, median(f.rates), f.rates, median(f.costs), f.costs)
		ofSemel := make([]float64, rounds) // the ratio to Semel
		for round := range ofSemel {
			ofSemel[round] = 1 / f.ratios[round]
		}
		reportFigure(t, contenders[i].name, once, map[string][]float64{"rate": f.rates, "ratio": ofSemel, "client": f.costs})
		if i > 0 {
			t.Logf("%d at once: %s has %.1f times the steps/s of %s (median of %.1f), which needs %.1f times its processor time (median of %.1f)",
				once, contenders[0].name, median(f.ratios), contenders[i].name, f.ratios, median(f.costRatios), f.costRatios)
		}
	}
}

// reportFigure writes a line to the log of the test, which test/benchmarks reads.
func reportFigure(t *testing.T, name string, once int, values map[string][]float64) {
	quartiles := map[string][]float64{} // of three rounds they are the three values
	for what, v := range values {
		quartiles[what] = slices.Sorted(slices.Values(v))
		for i := range v {
			if what == "client" { // from milliseconds
				quartiles[what][i] *= 1000
			}
		}
	}
	_, delay, _ := strings.Cut(t.Name(), "/")
	b, err := json.Marshal(map[string]any{"group": "DBOS, " + delay, "name": name, "kind": "steps of sagas", "n": once, "values": quartiles})
	if err != nil {
		t.Fatal(err)
	}
	t.Logf("benchmark: %s", b)
}

func median(values []float64) float64 { return slices.Sorted(slices.Values(values))[len(values)/2] }

// measure runs sagas, some at once, and returns the steps in a second, and the processor
// time of a step in milliseconds, of this process and the server.
func (b *bench) measure(t *testing.T, c contender, once, sagas int) (rate, cost float64) {
	first := b.next
	b.next += sagas
	numbers := make(chan int, sagas)
	for i := range sagas {
		numbers <- first + i
	}
	close(numbers)
	clientBefore, serverBefore := processorTime(t, b.dataDir)
	began := time.Now()
	var all sync.WaitGroup
	for range once {
		all.Go(func() {
			for n := range numbers {
				if err := c.run(t.Context(), fmt.Sprint(b.prefix, n), steps); err != nil {
					t.Errorf("%s: %v", c.name, err)
				}
			}
		})
	}
	all.Wait()
	took := time.Since(began)
	client, server := processorTime(t, b.dataDir)
	worked := client - clientBefore + server - serverBefore
	return float64(sagas*steps) / took.Seconds(), worked.Seconds() * 1000 / float64(sagas*steps)
}
