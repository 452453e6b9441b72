package pgstore

import (
	"context"
	"fmt"
	"slices"
	"testing"
	"time"
)

// TestClaimsOfALargeTable measures claims of new keys in a table of many rows
// against one of a million: SEMEL_TEST_GROWTH=20 for 20 million, of which 100
// need 70 GB. It takes some minutes to fill them; see scaleURL for how to do that
// before.
func TestClaimsOfALargeTable(t *testing.T) {
	n := scaleOf(t, "SEMEL_TEST_GROWTH", "how many million rows the large table has")
	url := scaleURL(t)
	stores := [2]*Store{filled(t, url, million, 0), filled(t, url, n*million, 0)}
	for _, s := range stores {
		warm(t, s)
	}
	run := time.Now().UnixNano() // the tables may be there from before
	for _, g := range []int{1, 16, 64} {
		for _, when := range []string{"after a checkpoint", "later"} {
			// A page that was changed since a checkpoint is logged in part, another
			// as a whole: later most are of the first kind.
			if when == "later" {
				for i, s := range stores {
					_, _ = claimer(s, fmt.Sprint(run, " warm ", g)).loop(t, "", 64, 1, 2*time.Second+time.Duration(i*n)*800*time.Millisecond)
				}
			} else {
				mustExec(t, stores[0].own, "CHECKPOINT")
			}
			var p50, p99 [2][]time.Duration
			const rounds = 5
			for round := range rounds {
				for i, s := range stores {
					_, took := claimer(s, fmt.Sprint(run, when, g, round)).loop(t, "", g, 1, 700*time.Millisecond)
					slices.Sort(took)
					p50[i], p99[i] = append(p50[i], took[len(took)/2]), append(p99[i], took[len(took)*99/100])
				}
			}
			for i, what := range [][2][]time.Duration{p50, p99} {
				small, large := median(what[0]), median(what[1])
				t.Logf("claims by %2d goroutines, %-18s %s: %8v of 1 million rows, %8v of %d million: %.2fx", g, when,
					[]string{"p50", "p99"}[i], small.Round(time.Microsecond), large.Round(time.Microsecond), n, float64(large)/float64(small))
			}
		}
	}
}

// claimer claims new keys.
func claimer(s *Store, prefix string) *contender {
	return &contender{name: "claim", do: func(ctx context.Context, key string) error {
		_, err := s.Claim(ctx, proposal(prefix+key))
		return err
	}}
}

func median[T float64 | time.Duration](v []T) T {
	v = slices.Sorted(slices.Values(v))
	return v[len(v)/2]
}
