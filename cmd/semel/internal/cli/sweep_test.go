package cli

import (
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/semel-go/semel/sweep"
)

func TestSweepProgress_LongPass_SaysEvery10Seconds(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var said strings.Builder
		p := newSweepProgress(&env{stderr: &said})
		for i := range 26 {
			p.step(sweep.Stats{Deleted: 100 * (i + 1), Parked: 1})
			time.Sleep(time.Second)
		}
		p.pass()
		p.step(sweep.Stats{}) // a short pass says nothing
		want := "semel sweep: after 10s and 11 steps: deleted 1100, released 0, parked 1\n" +
			"semel sweep: after 20s and 21 steps: deleted 2100, released 0, parked 1\n"
		if said.String() != want {
			t.Errorf("it said\n%swant\n%s", said.String(), want)
		}
	})
}
