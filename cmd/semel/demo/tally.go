package main

import (
	"slices"
	"time"

	"github.com/semel-go/semel/cmd/semel/demo/internal/fleet"
	"github.com/semel-go/semel/cmd/semel/demo/internal/ledger"
)

// Figures are the counts of one part of the demo. Charges are counted in the
// journal of the payment service (with --events: in the database), answers by
// the clients.
type Figures struct {
	Course
	Sent       int `json:"sent"`       // requests
	Duplicates int `json:"duplicates"` // requests beyond the first of each order

	ServiceKills  int `json:"payment_service_kills"` // requests only
	ProxyKills    int `json:"proxy_kills"`           // requests, with Semel
	ConsumerKills int `json:"consumer_kills"`        // messages only
	// CutBeforeCharge and CutAfterCharge count the requests that a kill of the
	// payment service, or of a consumer, ended before or after their charge.
	CutBeforeCharge int `json:"cut_before_charge"`
	CutAfterCharge  int `json:"cut_after_charge"`

	Executions   int `json:"executions"`    // handler runs
	Reexecutions int `json:"re_executions"` // handler runs beyond the first of each key
	Charges      int `json:"charges"`
	Replays      int `json:"replays"`
	Conflicts    int `json:"conflicts"`         // 409
	Unknown      int `json:"conflicts_unknown"` // conflicts for a parked key
	Refused      int `json:"changed_payloads_refused"`
	Accepted     int `json:"changed_payloads_accepted"`
	Failed       int `json:"failed_requests"` // no answer, hung up, 5xx
	Parked       int `json:"parked"`          // keys that semel proxy asked the payment service about
	Reconciled   int `json:"reconciled"`      // parked keys with a definite answer
	Happened     int `json:"reconciled_happened"`
	Fenced       int `json:"fenced"` // late requests that the payment service refused because of their fence

	DoubleCharges  int `json:"double_charges"` // charges beyond the first of each key
	Lost           int `json:"lost_orders"`    // orders without a charge, or with a receipt of a charge that does not exist
	UnequalReplays int `json:"unequal_answers"`
	Stuck          int `json:"stuck_orders"` // orders without a final answer, or without a completed record
	Unexpected     int `json:"unexpected"`   // final answers that are neither a receipt nor a refusal of a changed payload

	// ChargesPerOrder counts the orders that were charged 0, 1, 2, … times.
	ChargesPerOrder []int `json:"charges_per_order"`
}

// charged counts an order that was charged n times.
func (f *Figures) charged(n int) {
	for len(f.ChargesPerOrder) <= n {
		f.ChargesPerOrder = append(f.ChargesPerOrder, 0)
	}
	f.ChargesPerOrder[n]++
}

// count compares the answers that the clients got with the charges in the
// journal of the payment service. completed reports whether a key has a
// completed record; it is nil if there are no records.
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
		f.charged(len(s.Charges[id]))
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

// lost reports whether an order was not charged, or its client has a receipt of
// a charge that is not in the journal.
func lost(acks []fleet.Answer, charges []ledger.Entry) bool {
	for _, a := range acks {
		if !slices.ContainsFunc(charges, func(e ledger.Entry) bool { return string(e.Receipt()) == a.Body }) {
			return true
		}
	}
	return len(charges) == 0
}

// counters adds the counts that the clients and the processes kept.
func (f *Figures) counters(s *side) {
	c := &s.fleet.Counters
	f.Sent, f.Duplicates = int(c.Sent.Load()), int(c.Sent.Load())-len(s.plan.Orders)
	f.Replays, f.Conflicts, f.Unknown, f.Failed = int(c.Replays.Load()), int(c.Conflicts.Load()), int(c.Unknown.Load()), int(c.Failed.Load())
	f.targets(s.targets())
	f.ServiceKills, f.ProxyKills = int(s.service.kills.Load()), s.proxyKills()
}
