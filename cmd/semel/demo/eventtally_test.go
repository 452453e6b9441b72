package main

import (
	"errors"
	"reflect"
	"testing"
	"time"

	"github.com/semel-go/semel/cmd/semel/demo/internal/consumer"
	"github.com/semel-go/semel/cmd/semel/demo/internal/pipeline"
	"github.com/semel-go/semel/consume/driver"
)

var errEnough = errors.New("enough")

// found is what is found of an order that was charged once, in two consumers.
func found() (*pipeline.Plan, *evidence) {
	a, b := consumer.NewState(), consumer.NewState()
	a.RunsOf["order-1"], a.Reasons[driver.ReasonDone], a.Took = 1, 1, []time.Duration{time.Second}
	b.Reasons[driver.ReasonDuplicate] = 2
	return &pipeline.Plan{Orders: []pipeline.Order{{ID: "order-1", Amount: 100}}}, &evidence{
		charges: map[string][]int64{"order-1": {100}}, letters: map[driver.Reason]int{driver.ReasonMismatch: 1},
		completed: map[string]bool{"order-1": true}, states: []*consumer.State{a, b},
	}
}

func TestEventTally_AllDoneOnce_NothingBroken(t *testing.T) {
	want := Figures{Executions: 1, Charges: 1, Replays: 2, Refused: 1, ChargesPerOrder: []int{0, 1},
		Course: Course{Samples: 1, P50: 1000, P99: 1000, latencies: []float64{1000}}}
	if f := countEvents(found()); !reflect.DeepEqual(f, want) {
		t.Errorf("got %+v", f)
	}
}

func TestEventTally_BrokenPromise_IsCounted(t *testing.T) {
	for name, c := range map[string]struct {
		change func(*evidence)
		figure func(*Figures) int
		want   int
	}{
		"a double charge":      {func(e *evidence) { e.charges["order-1"] = []int64{100, 100, 100} }, func(f *Figures) int { return f.DoubleCharges }, 2},
		"a lost order":         {func(e *evidence) { e.charges = nil }, func(f *Figures) int { return f.Lost }, 1},
		"a wrong amount":       {func(e *evidence) { e.charges["order-1"] = []int64{101} }, func(f *Figures) int { return f.Lost }, 1},
		"a changed one":        {func(e *evidence) { e.charges["order-1"] = []int64{100, 101} }, func(f *Figures) int { return f.Accepted }, 1},
		"an unequal one":       {func(e *evidence) { e.charges["order-1"] = []int64{100, 101} }, func(f *Figures) int { return f.UnequalReplays }, 1},
		"a record not done":    {func(e *evidence) { e.completed["order-1"] = false }, func(f *Figures) int { return f.Stuck }, 1},
		"an unexpected letter": {func(e *evidence) { e.letters[driver.ReasonExhausted] = 2 }, func(f *Figures) int { return f.Unexpected }, 2},
		"a run elsewhere":      {func(e *evidence) { e.states[1].RunsOf["order-1"] = 2 }, func(f *Figures) int { return f.Reexecutions }, 2},
		"a handler cut off":    {func(e *evidence) { e.states[1].CutBefore = 3 }, func(f *Figures) int { return f.CutBeforeCharge }, 3},
		"and after":            {func(e *evidence) { e.states[1].CutAfter = 3 }, func(f *Figures) int { return f.CutAfterCharge }, 3},
		"an error":             {func(e *evidence) { e.states[1].Reasons[driver.ReasonError] = 3 }, func(f *Figures) int { return f.Failed }, 3},
		"a held one":           {func(e *evidence) { e.states[1].Held = 3 }, func(f *Figures) int { return f.Conflicts }, 3},
	} {
		plan, e := found()
		c.change(e)
		if f := countEvents(plan, e); c.figure(&f) != c.want {
			t.Errorf("%s: got %+v", name, f)
		}
	}
	plan, e := found()
	e.completed = nil
	if f := countEvents(plan, e); f.Stuck != 0 {
		t.Error("where there are no records, one is missed")
	}
}
