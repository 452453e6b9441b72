package pgoutbox

import (
	"context"
	"fmt"
	"os"
	"slices"
	"testing"
	"time"

	"github.com/semel-go/semel/outbox"
	"github.com/semel-go/semel/store/pgstore"
	"github.com/semel-go/semel/store/pgstore/internal/cuttest"
	"github.com/semel-go/semel/store/pgstore/internal/pgwire"
	"github.com/semel-go/semel/store/pgstore/pgtest"
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

// A publisher's process is paused, or its host is gone, after Lease has locked the
// lanes. Nothing closes its connection.
func TestLease_PublisherIsPausedInside_OthersGetTheLanes(t *testing.T) {
	schema := fmt.Sprintf("paused%d", os.Getpid())
	p := openShop(t, pgtest.URL(t), schema)
	cut, through := cuttest.New(t, pgtest.URL(t), true)
	st, err := pgstore.Open(t.Context(), through, &pgstore.Options{Schema: schema})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = st.Close() })
	paused, err := New(st, nil)
	if err != nil {
		t.Fatal(err)
	}
	cut.Until = "no answer has this text" // so that the answer never comes
	cut.At("ORDER BY lane FOR UPDATE")
	ctx, cancel := context.WithCancel(t.Context())
	done := make(chan error, 1)
	go func() {
		_, _, err := paused.Lease(ctx, "paused", time.Second)
		done <- err
	}()
	defer func() {
		cancel()
		if err := <-done; err == nil {
			t.Error("the paused publisher got an answer, so the test tests nothing")
		}
	}()
	limited, stop := context.WithTimeout(t.Context(), 10*time.Second)
	defer stop()
	for free := 1; free > 0; {
		err := p.app.QueryRow(limited, "SELECT count(*) FROM (SELECT FROM "+pgwire.DatabaseOf(p.st).Schema+".semel_outbox_lane FOR UPDATE SKIP LOCKED) AS l").Scan(&free)
		if err != nil {
			t.Fatal(err)
		}
	}
	if lanes, _, err := p.box.Lease(limited, "other", time.Second); err != nil || len(lanes) == 0 {
		t.Errorf("the other publisher has %d lanes: %v", len(lanes), err)
	}
}
