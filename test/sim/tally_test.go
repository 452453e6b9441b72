package sim

import (
	"slices"
	"strings"
	"testing"

	"github.com/semel-go/semel"
)

// missing names each place that no seed has reached, and each place has a name.
func TestTally_NeverReached_Named(t *testing.T) {
	var none tally
	names := none.missing()
	if want := int(places) + len(eventNames); len(names) != want {
		t.Errorf("%d names, want %d", len(names), want)
	}
	slices.Sort(names)
	if len(slices.Compact(slices.Clone(names))) != len(names) || names[0] == "" {
		t.Errorf("two places have one name, or one has none: %q", names)
	}

	var one tally
	one.place[zombieRefused], one.event[eventIndex(&semel.Event{Kind: semel.EventParked, EndsCall: true})] = 1, 2
	none.add(&one)
	got := none.missing()
	if len(got) != len(names)-2 || slices.Contains(got, placeNames[zombieRefused]) || !strings.Contains(none.String(), placeNames[zombieRefused]+" 1") {
		t.Errorf("after one zombie and two parked calls %q are missing, of %q", got, names)
	}
}
