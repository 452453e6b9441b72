package ledger

import "testing"

func TestTail_Entries_AreThoseOfTheLedger(t *testing.T) {
	p := path(t)
	tail := NewTail(p)
	if err := tail.Update(); err != nil || tail.State.Boots != 0 {
		t.Fatalf("a file that is not there yet: %+v, %v", tail.State, err)
	}
	b := openBook(t, p)
	pay(t, b, ada, 1)
	open := begin(t, b, ada, 2)
	for range 2 { // reading again changes nothing
		if err := tail.Update(); err != nil {
			t.Fatal(err)
		}
	}
	if before, after := tail.State.InFlight(); before != 1 || after != 0 || tail.State.Charged != 1 || tail.State.Runs != 2 {
		t.Errorf("%d before, %d after, %+v", before, after, tail.State)
	}
	if _, err := b.Charge(open, ada, 2, "order-1", 1); err != nil {
		t.Fatal(err)
	}
	ask(t, b, ID{"bob", "key-2"}, 3)
	if err := tail.Update(); err != nil {
		t.Fatal(err)
	}
	if before, after := tail.State.InFlight(); before != 0 || after != 1 || tail.State.Double() != 1 {
		t.Errorf("%d before, %d after, %d double", before, after, tail.State.Double())
	}
	if tail.State.Answers[ID{"bob", "key-2"}] != No || tail.State.Asked != 1 {
		t.Errorf("answers %v", tail.State.Answers)
	}
}
