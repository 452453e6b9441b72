package main

import (
	"reflect"
	"testing"
	"time"

	"github.com/semel-go/semel/cmd/semel/demo/internal/fleet"
	"github.com/semel-go/semel/cmd/semel/demo/internal/ledger"
)

// scene is an order that was charged, and a client that holds its receipt.
type scene struct {
	orders   []fleet.Order
	outcomes []fleet.Outcome
	state    *ledger.State
	done     map[ledger.ID]bool
}

var id = ledger.ID{Tenant: "ada", Key: "key-1"}

func charge(n int) *ledger.Entry {
	return &ledger.Entry{Kind: ledger.Paid, Run: n, Tenant: id.Tenant, Key: id.Key, Order: "order-1", Amount: 100, Charge: n}
}

func ack(n int) fleet.Answer {
	return fleet.Answer{Status: 201, ContentType: "application/json", Body: string(charge(n).Receipt())}
}

func newScene() *scene {
	s := &scene{
		orders:   []fleet.Order{{Name: "order-1", Tenant: id.Tenant, Key: id.Key, Amount: 100}},
		outcomes: []fleet.Outcome{{Acks: []fleet.Answer{ack(1), ack(1)}, Refused: 1}},
		state:    ledger.NewState(),
		done:     map[ledger.ID]bool{id: true},
	}
	s.apply(&ledger.Entry{Kind: ledger.Boot}, &ledger.Entry{Kind: ledger.Begin, Run: 1, Tenant: id.Tenant, Key: id.Key}, charge(1),
		&ledger.Entry{Kind: ledger.End, Run: 1})
	return s
}

func (s *scene) apply(entries ...*ledger.Entry) {
	for _, e := range entries {
		s.state.Apply(e)
	}
}

func (s *scene) count() Figures {
	return count(s.orders, s.outcomes, s.state, func(id ledger.ID) bool { return s.done[id] })
}

func TestTally_AllDoneOnce_NothingBroken(t *testing.T) {
	f := newScene().count()
	want := Figures{Executions: 1, Charges: 1, Refused: 1, ChargesPerOrder: []int{0, 1}}
	if !reflect.DeepEqual(f, want) {
		t.Errorf("got %+v", f)
	}
}

func TestTally_BrokenPromise_IsCounted(t *testing.T) {
	for name, c := range map[string]struct {
		happens func(*scene)
		seen    func(*Figures) int
	}{
		"a double charge": {
			func(s *scene) { s.apply(charge(2)) },
			func(f *Figures) int { return f.DoubleCharges },
		},
		"an order that was never charged": {
			func(s *scene) { s.state = ledger.NewState(); s.outcomes[0].Acks = nil },
			func(f *Figures) int { return f.Lost },
		},
		"a receipt of a charge that is not there": {
			func(s *scene) { s.outcomes[0].Acks = []fleet.Answer{ack(7)} },
			func(f *Figures) int { return f.Lost },
		},
		"an answer with another body": {
			func(s *scene) { s.apply(charge(2)); s.outcomes[0].Acks[1] = ack(2) },
			func(f *Figures) int { return f.UnequalReplays },
		},
		"an answer with another status": {
			func(s *scene) { s.outcomes[0].Acks[1].Status = 200 },
			func(f *Figures) int { return f.UnequalReplays },
		},
		"an answer with another type": {
			func(s *scene) { s.outcomes[0].Acks[1].ContentType = "" },
			func(f *Figures) int { return f.UnequalReplays },
		},
		"a client without a final answer": {
			func(s *scene) { s.outcomes[0].Open = 1 },
			func(f *Figures) int { return f.Stuck },
		},
		"a record that is not completed": {
			func(s *scene) { s.done = nil },
			func(f *Figures) int { return f.Stuck },
		},
		"a changed payload that was taken": {
			func(s *scene) { s.outcomes[0].Accepted = 1 },
			func(f *Figures) int { return f.Accepted },
		},
		"an answer that nobody can expect": {
			func(s *scene) { s.outcomes[0].Odd = []fleet.Answer{{Status: 400}} },
			func(f *Figures) int { return f.Unexpected },
		},
		"a second execution": {
			func(s *scene) { s.apply(&ledger.Entry{Kind: ledger.Begin, Run: 2, Tenant: id.Tenant, Key: id.Key}) },
			func(f *Figures) int { return f.Reexecutions },
		},
		"a request cut off before its charge": {
			func(s *scene) {
				s.apply(&ledger.Entry{Kind: ledger.Begin, Run: 2, Tenant: "bob", Key: "k"}, &ledger.Entry{Kind: ledger.Boot})
			},
			func(f *Figures) int { return f.CutBeforeCharge },
		},
		"a late request that was refused": {
			func(s *scene) { s.apply(&ledger.Entry{Kind: ledger.Stale, Run: 2}) },
			func(f *Figures) int { return f.Fenced },
		},
	} {
		t.Run(name, func(t *testing.T) {
			s := newScene()
			c.happens(s)
			f := s.count()
			if got := c.seen(&f); got != 1 {
				t.Errorf("counted %d times in %+v", got, f)
			}
		})
	}
}

func TestTally_ParkedAndLedgerKnows_IsReconciled(t *testing.T) {
	s := newScene()
	for key, a := range map[string]ledger.Answer{"a": ledger.Yes, "b": ledger.No, "c": ledger.Unsure} {
		s.apply(&ledger.Entry{Kind: ledger.Asked, Key: key, Answer: ledger.Unsure}, &ledger.Entry{Kind: ledger.Asked, Key: key, Answer: a})
	}
	if f := s.count(); f.Parked != 3 || f.Reconciled != 2 || f.Happened != 1 {
		t.Errorf("%d parked, %d reconciled, %d happened", f.Parked, f.Reconciled, f.Happened)
	}
}

func TestTally_SideWithoutRecords_HasNoneToComplete(t *testing.T) {
	s := newScene()
	if f := count(s.orders, s.outcomes, s.state, nil); f.Stuck != 0 {
		t.Errorf("%d stuck", f.Stuck)
	}
}

func TestLatency_DisturbedCall_IsNotCounted(t *testing.T) {
	outcomes := make([]fleet.Outcome, 200)
	for i := range 100 {
		outcomes[i].Latency = time.Duration(i+1) * time.Millisecond
	}
	f := count(make([]fleet.Order, 200), outcomes, ledger.NewState(), nil)
	if f.Samples != 100 || f.P50 != 51 || f.P99 != 100 {
		t.Errorf("%d samples, p50 %v, p99 %v", f.Samples, f.P50, f.P99)
	}
	if percentile(nil, 50) != 0 || percentile([]time.Duration{time.Second}, 99) != 1000 {
		t.Error("a percentile of none, or of one, is wrong")
	}
}
