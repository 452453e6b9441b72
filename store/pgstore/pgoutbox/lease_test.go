package pgoutbox

import (
	"slices"
	"testing"
	"time"

	"github.com/semel-go/semel/outbox"
)

// percentile is the p-th percentile of times.
func percentile(times []time.Duration, p int) time.Duration {
	slices.Sort(times)
	return times[min(len(times)-1, len(times)*p/100)]
}

func TestChoose_EachLease_IsFreeOrNot(t *testing.T) {
	const now, length = 1_000_000, 10_000
	lane := func(n int, owner string, until int64) laneRow {
		return laneRow{outbox.Lane{Number: n, Fence: 7}, owner, until, length}
	}
	rows := []laneRow{
		lane(0, "me", now-1),              // over, but mine
		lane(1, "", now+length),           // nobody's
		lane(2, "other", now-1),           // over
		lane(3, "other", now+length),      // held
		lane(4, "other", now+length+1),    // ends later than it may: the clock was set back
		lane(5, "other", now+1000*length), // likewise, from a restored database
	}
	want := []outbox.Lane{{Number: 0, Fence: 7}, {Number: 1, Fence: 8}, {Number: 2, Fence: 8}, {Number: 4, Fence: 8}, {Number: 5, Fence: 8}}
	if got := choose(rows, "me", now, 16); !slices.Equal(got, want) {
		t.Errorf("got %v, want %v", got, want)
	}
	if got := choose(rows, "me", now, 2); !slices.Equal(got, want[:2]) {
		t.Errorf("with a share of 2: %v, want %v", got, want[:2])
	}
}
