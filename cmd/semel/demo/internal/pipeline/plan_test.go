package pipeline

import (
	"reflect"
	"testing"
)

func TestPlan_SameSeed_IsTheSame(t *testing.T) {
	a, b, c := NewPlan(7, 500), NewPlan(7, 500), NewPlan(8, 500)
	if !reflect.DeepEqual(a, b) {
		t.Error("two plans of one seed differ")
	}
	if reflect.DeepEqual(a, c) {
		t.Error("two seeds give one plan")
	}
}

func TestPlan_Order_IsSentUpToThreeTimes(t *testing.T) {
	const n = 3000
	p := NewPlan(1, n)
	sends, firsts, messages, changes := make([]int, n), make([]int, n), 0, map[int]bool{}
	for _, s := range p.Steps {
		messages += s.Copies
		switch s.Kind {
		case First:
			firsts[s.Order]++
			sends[s.Order] += s.Copies
		case Again:
			sends[s.Order] += s.Copies
		case Changed:
			changes[s.Order] = true
		}
		if s.Kind != First && (firsts[s.Order] != 1 || s.Copies != 1) {
			t.Errorf("%+v comes before the first, or in a crowd", s)
		}
	}
	of := map[int]int{}
	for i, times := range sends {
		of[times]++
		if firsts[i] != 1 {
			t.Errorf("order %d has %d first steps", i, firsts[i])
		}
	}
	for times := 1; times <= mostSends; times++ {
		if of[times] < n/4 {
			t.Errorf("%d of %d orders are sent %d times", of[times], n, times)
		}
	}
	if len(of) != mostSends || messages != p.Messages || len(changes) != p.Changes || p.Changes != n*changed/100 {
		t.Errorf("sent %v times; %d (%d) messages, %d (%d) changes", of, messages, p.Messages, len(changes), p.Changes)
	}
}

func TestPlan_Orders_Differ(t *testing.T) {
	ids := map[string]bool{}
	for _, o := range NewPlan(1, 300).Orders {
		ids[o.ID] = true
		if o.Amount < 100 {
			t.Errorf("%+v", o)
		}
	}
	if len(ids) != 300 {
		t.Errorf("%d ids", len(ids))
	}
}
