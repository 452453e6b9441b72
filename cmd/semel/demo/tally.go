package main

import (
	"slices"
	"time"

	"github.com/semel-go/semel/cmd/semel/demo/internal/fleet"
	"github.com/semel-go/semel/cmd/semel/demo/internal/ledger"
)

// Figures are what came of a side. The effects are counted in the journal of
// the ledger, the answers by the clients.
type Figures struct {
	Sent       int `json:"sent"`       // requests
	Duplicates int `json:"duplicates"` // requests beyond the first of each order

	WorkerKills     int `json:"worker_kills"`
	ProxyKills      int `json:"proxy_kills"`
	Kills           int `json:"kills"` // both
	InFlightAtKills int `json:"in_flight_at_kills"`
	// CutBeforeCharge and CutAfterCharge are the requests that a kill of the
	// worker has ended before, and after, they had their effect.
	CutBeforeCharge int `json:"cut_before_charge"`
	CutAfterCharge  int `json:"cut_after_charge"`

	Executions   int `json:"executions"`    // requests that the worker has worked on
	Reexecutions int `json:"re_executions"` // of those, beyond the first of each key
	Charges      int `json:"charges"`
	Replays      int `json:"replays"`
	Conflicts    int `json:"conflicts"`          // 409
	Unknown      int `json:"conflicts_unknown"`  // of those, for a parked key
	Refused      int `json:"mismatches_refused"` // changed payloads
	Accepted     int `json:"mismatches_accepted"`
	Failed       int `json:"failed_requests"` // no answer, hung up, 5xx
	Parked       int `json:"parked"`          // keys whose fate was asked about
	Reconciled   int `json:"reconciled"`      // of those, settled by the answer
	Happened     int `json:"reconciled_happened"`
	Fenced       int `json:"fenced"` // late requests that the worker refused by their fence

	DoubleCharges  int `json:"double_charges"` // beyond the first of each key
	Lost           int `json:"lost"`           // orders without a charge, or with a receipt of none
	UnequalReplays int `json:"unequal_replays"`
	Stuck          int `json:"stuck"`           // orders without a final answer, or whose record is not completed
	Unexpected     int `json:"unexpected"`      // final answers that no client can expect
	Crashes        int `json:"crashes"`         // processes that died by themselves
	Samples        int `json:"latency_samples"` // undisturbed first calls

	P50 float64 `json:"latency_p50_ms"`
	P99 float64 `json:"latency_p99_ms"`
}

// count compares what the clients were told with what the ledger has done.
// Completed says whether a key's record is; nil: there are no records.
func count(orders []fleet.Order, outcomes []fleet.Outcome, s *ledger.State, completed func(ledger.ID) bool) Figures {
	f := Figures{
		Executions: s.Runs, Charges: s.Charged, DoubleCharges: s.Double(), Fenced: s.Refused,
		CutBeforeCharge: s.CutBefore, CutAfterCharge: s.CutAfter, Parked: len(s.Answers),
	}
	for _, n := range s.RunsOf {
		f.Reexecutions += n - 1
	}
	for _, a := range s.Answers {
		if a == ledger.Yes {
			f.Happened++
		}
		if a != ledger.Unsure {
			f.Reconciled++
		}
	}
	var took []time.Duration
	for i := range outcomes {
		o := &outcomes[i]
		id := ledger.ID{Tenant: orders[i].Tenant, Key: orders[i].Key}
		f.Refused += o.Refused
		f.Accepted += o.Accepted
		f.Unexpected += len(o.Odd)
		f.UnequalReplays += unequal(o.Acks)
		if lost(o.Acks, s.Charges[id]) {
			f.Lost++
		}
		if o.Open > 0 || completed != nil && !completed(id) {
			f.Stuck++
		}
		if o.Latency > 0 {
			took = append(took, o.Latency)
		}
	}
	f.percentiles(took)
	return f
}

// unequal counts the answers that differ from the first.
func unequal(acks []fleet.Answer) (n int) {
	for _, a := range acks {
		if a != acks[0] {
			n++
		}
	}
	return n
}

// lost reports whether an order was not charged, or its client holds a receipt
// of a charge that the ledger does not have.
func lost(acks []fleet.Answer, charges []ledger.Entry) bool {
	for _, a := range acks {
		if !slices.ContainsFunc(charges, func(e ledger.Entry) bool { return string(e.Receipt()) == a.Body }) {
			return true
		}
	}
	return len(charges) == 0
}

// percentiles sets the latencies.
func (f *Figures) percentiles(took []time.Duration) {
	slices.Sort(took)
	f.Samples, f.P50, f.P99 = len(took), percentile(took, 50), percentile(took, 99)
}

// percentile is in milliseconds; sorted is. 0 of nothing.
func percentile(sorted []time.Duration, p int) float64 {
	if len(sorted) == 0 {
		return 0
	}
	n := min(len(sorted)-1, len(sorted)*p/100)
	return float64(sorted[n].Microseconds()) / 1000
}

// counters adds what was counted on the way.
func (f *Figures) counters(s *side) {
	c := &s.fleet.Counters
	f.Sent, f.Duplicates = int(c.Sent.Load()), int(c.Sent.Load())-len(s.plan.Orders)
	f.Replays, f.Conflicts, f.Unknown, f.Failed = int(c.Replays.Load()), int(c.Conflicts.Load()), int(c.Unknown.Load()), int(c.Failed.Load())
	f.targets(s.targets())
	f.WorkerKills, f.ProxyKills = int(s.worker.kills.Load()), s.proxyKills()
}
