package pgstore

import (
	"slices"
	"testing"
	"time"
)

// TestScale_CheckpointCycles measures all claims of random keys that are
// made in a table of many rows, against one of a million, from one checkpoint of
// the server to the next: SEMEL_TEST_CYCLE=100 for 100 million, as in
// TestScale_LargeTable, which tells of the phases in between. The tables take
// turns of a second, so that other work of the machine affects both. The
// cycle is of 5 minutes in all, which is the server's default, or of half of that
// for each table: of a longer one less would be right after the checkpoint.
func TestScale_CheckpointCycles(t *testing.T) {
	t.Parallel()
	n := scaleOf(t, "SEMEL_TEST_CYCLE", "how many million rows the large table has")
	url := scaleURL(t)
	stores := [2]*Store{filled(t, url, million, 0), filled(t, url, n*million, 0)}
	for _, s := range stores {
		warm(t, s)
	}
	const turn, turns, at = time.Second, 150, 15
	for _, g := range []int{64, 16, 1} {
		mustExec(t, stores[0].ownPool, "CHECKPOINT")
		var all, first [2][]time.Duration // first: in the turns after the checkpoint
		for i := range turns {
			for of, s := range stores {
				_, took := claimer(s, random).loop(t, "", g, 1, turn)
				if all[of] = append(all[of], took...); i < at {
					first[of] = append(first[of], took...)
				}
			}
		}
		for _, part := range []struct {
			of   string
			took [2][]time.Duration
		}{{"from checkpoint to checkpoint", all}, {"of which right behind it", first}} {
			for _, q := range []struct {
				name string
				in   int // thousand
			}{{"p50", 500}, {"p99", 990}} {
				var of [2]time.Duration
				for i, took := range part.took {
					slices.Sort(took)
					of[i] = took[len(took)*q.in/1000]
				}
				t.Logf("claims by %2d goroutines, %-29s %s: %8v of 1 million rows (%d claims), %8v of %d million (%d): %.2fx", g, part.of, q.name,
					of[0].Round(time.Microsecond), len(part.took[0]), of[1].Round(time.Microsecond), n, len(part.took[1]), float64(of[1])/float64(of[0]))
			}
		}
	}
}
