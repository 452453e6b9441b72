package fleet

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

func TestPlan_Kinds_HaveTheirShares(t *testing.T) {
	const n = 2000
	p := NewPlan(1, n)
	duplicated, hangUps, crowds, changes, deliveries := map[int]bool{}, 0, 0, 0, 0
	for _, s := range p.Steps {
		deliveries += s.Copies
		if s.Copies < 1 || s.Copies > 5 {
			t.Errorf("%d copies", s.Copies)
		}
		if s.Copies > 1 {
			crowds++
		}
		if s.Kind == Again || s.Copies > 1 {
			duplicated[s.Order] = true
		}
		if s.Kind == Changed {
			changes++
		}
		if s.HangUp > 0 {
			hangUps++
			if s.Kind != First || s.HangUp >= p.Orders[s.Order].Work {
				t.Errorf("%+v does not hang up before its work of %v is done", s, p.Orders[s.Order].Work)
			}
		}
	}
	if len(duplicated) != n*30/100 || hangUps != n*5/100 || changes != n*2/100 || changes != p.Changes || deliveries != p.Deliveries {
		t.Errorf("of %d orders %d are duplicated, %d hang up, %d (%d) change; %d (%d) deliveries",
			n, len(duplicated), hangUps, changes, p.Changes, deliveries, p.Deliveries)
	}
	stalls := 0
	for _, o := range p.Orders {
		if o.Work == Stall {
			stalls++
		}
	}
	if stalls == 0 || stalls > n*1/100 { // some of them may hang up instead
		t.Errorf("%d payments take very long", stalls)
	}
	if crowds != n*30/100*2/3 {
		t.Errorf("%d steps are taken by several clients at once", crowds)
	}
}

func TestPlan_Order_SentBeforeItsRepetition(t *testing.T) {
	p := NewPlan(3, 300)
	sent := map[int]int{}
	for _, s := range p.Steps {
		if s.Kind == First {
			sent[s.Order]++
		} else if sent[s.Order] == 0 {
			t.Errorf("order %d is sent again before it is sent", s.Order)
		}
	}
	for i := range p.Orders {
		if sent[i] != 1 {
			t.Errorf("order %d is sent first %d times", i, sent[i])
		}
	}
}

func TestPlan_Tenants_UseTheSameKeys(t *testing.T) {
	p := NewPlan(1, 300)
	type id struct{ tenant, key string }
	ids, keys := map[id]bool{}, map[string]bool{}
	for _, o := range p.Orders {
		ids[id{o.Tenant, o.Key}] = true
		keys[o.Key] = true
	}
	if len(ids) != 300 || len(keys) != 100 {
		t.Errorf("%d pairs of tenant and key, %d keys", len(ids), len(keys))
	}
}

func TestPlan_Small_HasAllKinds(t *testing.T) {
	p := NewPlan(1, 10)
	kinds, hangUps := map[Kind]int{}, 0
	for _, s := range p.Steps {
		kinds[s.Kind]++
		if s.HangUp > 0 {
			hangUps++
		}
	}
	if kinds[First] != 10 || kinds[Again] == 0 || kinds[Changed] == 0 || hangUps == 0 {
		t.Errorf("kinds %v, %d hang up", kinds, hangUps)
	}
}
