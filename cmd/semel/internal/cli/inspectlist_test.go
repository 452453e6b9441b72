package cli

import (
	"context"
	"iter"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/semel-go/semel/cmd/semel/internal/program"
	"github.com/semel-go/semel/store"
)

// slowLister takes a time to find that there are no records.
type slowLister time.Duration

func (l slowLister) List(context.Context, store.Filter) iter.Seq2[store.Found, error] {
	return func(func(store.Found, error) bool) { time.Sleep(time.Duration(l)) }
}

func TestInspectList_LongList_SaysThatItIsStillReading(t *testing.T) {
	const none = "semel inspect list: there are no such records\n"
	for takes, want := range map[time.Duration]string{
		9 * time.Second:  "",
		25 * time.Second: "semel inspect list: still reading after 10s\nsemel inspect list: still reading after 20s\n",
	} {
		synctest.Test(t, func(t *testing.T) {
			var said strings.Builder
			c := inspectListCmd{Limit: 1}
			if err := c.list(t.Context(), &env{stderr: &said}, slowLister(takes), nil); err != nil || said.String() != want+none {
				t.Errorf("in %v: error %v, said %q, want %q", takes, err, said.String(), want+none)
			}
		})
	}
}

func TestInspectList_NothingParked_HintsAtSweep(t *testing.T) {
	t.Parallel()
	url, _ := seed(t)
	for state, want := range map[string]bool{"parked": true, "parked,processing": false, "started": false} {
		r := command(t, "inspect", "list", "--tenant", "bob", "--state", state, "--store", url)
		if r.code != program.ExitOK || strings.Contains(r.stderr, "semel sweep --once --store "+url+"\n") != want {
			t.Errorf("%s: %+v", state, r)
		}
	}
}
