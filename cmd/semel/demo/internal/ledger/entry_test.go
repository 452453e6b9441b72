package ledger

import (
	"encoding/json"
	"testing"
)

func TestReceipt_OddOrderName_IsJSON(t *testing.T) {
	for _, order := range []string{"order-1", `a"b`, "a\x00b", "ö\u2028", "<&>"} {
		e := Entry{Kind: Paid, Order: order, Amount: 12, Charge: 3}
		var got receipt
		if err := json.Unmarshal(e.Receipt(), &got); err != nil || got != (receipt{"ch-000003", order, 12}) {
			t.Errorf("%s: %+v, %v", e.Receipt(), got, err)
		}
	}
}

func TestEntries_EndOfEarlierProcess_DoesNotCount(t *testing.T) {
	s := NewState()
	for _, e := range []Entry{
		{Kind: Boot}, {Kind: Begin, Run: 1, Key: "k"}, {Kind: Boot}, {Kind: Begin, Run: 2, Key: "k"}, {Kind: End, Run: 1},
	} {
		s.Apply(&e)
	}
	if before, after := s.InFlight(); before != 1 || after != 0 || s.busy[ID{Key: "k"}] != 1 || s.CutBefore != 1 {
		t.Errorf("%d before, %d after, %d busy, %d cut", before, after, s.busy[ID{Key: "k"}], s.CutBefore)
	}
}

func TestFence_Closed_NeverSinks(t *testing.T) {
	s := NewState()
	for _, e := range []Entry{{Kind: Closed, Key: "k", Fence: 9}, {Kind: Closed, Key: "k", Fence: 4}} {
		s.Apply(&e)
	}
	if k := (ID{Key: "k"}); !s.stale(k, 9) || s.stale(k, 10) || s.stale(ID{Key: "other"}, 0) {
		t.Error("the closed fence is not 9, or reaches another key")
	}
}
