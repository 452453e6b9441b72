package consumer

import (
	"slices"
	"testing"
	"time"

	"github.com/semel-go/semel/consume/driver"
)

func state(es ...Entry) *State {
	s := NewState()
	for i := range es {
		s.Apply(&es[i])
	}
	return s
}

func TestEntries_NotSettled_AreInFlight(t *testing.T) {
	lines := []Entry{{Kind: Boot}, {Kind: Taken, Seq: 1}, {Kind: Taken, Seq: 2}, {Kind: Begun, Seq: 1, Key: "a"}, {Kind: Charged, Seq: 1}, {Kind: Settled, Seq: 1}}
	want := [][2]int{{0, 0}, {1, 0}, {2, 0}, {2, 1}, {2, 1}, {1, 0}}
	for n := range lines {
		all, atWork := state(lines[:n+1]...).InFlight()
		if got := [2]int{all, atWork}; got != want[n] {
			t.Errorf("after %s: %v, want %v", lines[n].Kind, got, want[n])
		}
	}
}

func TestEntries_ProcessStartsAgain_InFlightIsCutOff(t *testing.T) {
	s := state(Entry{Kind: Boot}, Entry{Kind: Taken, Seq: 1}, Entry{Kind: Taken, Seq: 2}, Entry{Kind: Taken, Seq: 3},
		Entry{Kind: Begun, Seq: 2, Key: "a"}, Entry{Kind: Begun, Seq: 3, Key: "b"}, Entry{Kind: Charged, Seq: 3}, Entry{Kind: Boot},
		Entry{Kind: Taken, Seq: 2}, Entry{Kind: Begun, Seq: 2, Key: "a"})
	if all, atWork := s.InFlight(); s.CutBefore != 1 || s.CutAfter != 1 || s.Boots != 2 || all != 1 || atWork != 1 {
		t.Errorf("cut %d and %d, %d boots; %d in flight, %d at work", s.CutBefore, s.CutAfter, s.Boots, all, atWork)
	}
	if s.RunsOf["a"] != 2 || s.RunsOf["b"] != 1 {
		t.Errorf("runs %v", s.RunsOf)
	}
}

func TestEntries_Settled_CountedByReason(t *testing.T) {
	s := state(Entry{Kind: Settled, Reason: driver.ReasonDone, Took: time.Second}, Entry{Kind: Held},
		Entry{Kind: Settled, Reason: driver.ReasonDuplicate}, Entry{Kind: Settled, Reason: driver.ReasonDone})
	if s.Reasons[driver.ReasonDone] != 2 || s.Reasons[driver.ReasonDuplicate] != 1 || s.Held != 1 || !slices.Equal(s.Took, []time.Duration{time.Second}) {
		t.Errorf("%+v", s)
	}
}
