package main

import (
	"slices"
	"time"

	"github.com/semel-go/semel/cmd/semel/demo/internal/consumer"
	"github.com/semel-go/semel/cmd/semel/demo/internal/pipeline"
	"github.com/semel-go/semel/consume/driver"
)

// evidence is the data that a part of the demo leaves.
type evidence struct {
	charges   map[string][]int64 // of each order, in the database
	letters   map[driver.Reason]int
	completed map[string]bool // keys with a completed record; nil: there are no records
	states    []*consumer.State
}

// countEvents compares the orders with the charges in the database.
func countEvents(plan *pipeline.Plan, e *evidence) (f Figures) {
	runs := map[string]int{}
	var took []time.Duration
	for _, s := range e.states {
		for key, n := range s.RunsOf {
			runs[key] += n
		}
		f.Conflicts += s.Held
		f.CutBeforeCharge += s.CutBefore
		f.CutAfterCharge += s.CutAfter
		f.Replays += s.Reasons[driver.ReasonDuplicate]
		f.Failed += s.Reasons[driver.ReasonError]
		took = append(took, s.Took...)
	}
	for _, n := range runs {
		f.Executions += n
		f.Reexecutions += n - 1
	}
	for i := range plan.Orders {
		o := &plan.Orders[i]
		charges := e.charges[o.ID]
		f.charged(len(charges))
		f.Charges += len(charges)
		f.DoubleCharges += max(0, len(charges)-1)
		if !slices.Contains(charges, o.Amount) {
			f.Lost++
		}
		for _, amount := range charges {
			if amount != charges[0] {
				f.UnequalReplays++
			}
			if amount != o.Amount {
				f.Accepted++
			}
		}
		if e.completed != nil && !e.completed[o.ID] {
			f.Stuck++
		}
	}
	f.Refused = e.letters[driver.ReasonMismatch]
	for why, n := range e.letters {
		if why != driver.ReasonMismatch {
			f.Unexpected += n
		}
	}
	f.percentiles(took)
	return f
}
