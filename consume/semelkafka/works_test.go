package semelkafka

import (
	"errors"
	"slices"
	"testing"

	"github.com/semel-go/semel"
	"github.com/semel-go/semel/consume"
	"github.com/semel-go/semel/consume/driver"
)

// What has come to its end makes room for others, with nothing left in it; what
// waits does not.
func TestWorksAreUsedAgainWhenTheyAreOver(t *testing.T) {
	l := &scripted{ends: map[string]driver.Result{"0/0": {Err: errors.New("flaky"), FromHandler: true, Attempt: 1}, "1/1": {Err: semel.Final(errors.New("no")), FromHandler: true, Attempt: 1}}}
	b := looping(t, l, consume.Options{AckFailures: true}, 1, 3)
	b.turn(t)
	held := b.held["0"].works[0]
	if len(b.free) != 3 || slices.Contains(b.free, held) {
		t.Fatalf("%d are free, with what waits: %v", len(b.free), slices.Contains(b.free, held))
	}
	for i, w := range b.free {
		if *w != (work{}) {
			t.Errorf("free work %d has %+v left", i, w)
		}
	}
	for turn := range 3 { // more than there is room for, and fewer
		n := []int{5, 2, 4}[turn]
		b.s.come(1, b.s.parts[place{"t", 1}].polled, n)
		l.given = nil
		b.turn(t)
		if len(l.given) != n || slices.Contains(l.given, "0/0") {
			t.Errorf("turn %d: the ledger was given %q", turn, l.given)
		}
		if got := held.it.Origin; got.Partition != 0 || got.Offset != 0 || held.tries != 1 {
			t.Fatalf("what waits is %+v now, tried %d times", got, held.tries)
		}
	}
	if len(b.free) != 5 {
		t.Errorf("%d are free, want as many as there were at once", len(b.free))
	}
	l.ends = nil
	b.due()
	b.turn(t)
	if len(b.held) > 0 || len(b.free) != 6 {
		t.Errorf("at the end %d lanes wait, and %d are free", len(b.held), len(b.free))
	}
}
