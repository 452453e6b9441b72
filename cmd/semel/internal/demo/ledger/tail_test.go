package ledger

import (
	"os"
	"path/filepath"
	"testing"
)

func TestATailSeesWhatTheLedgerSees(t *testing.T) {
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

func TestATailWaitsForTheEndOfALine(t *testing.T) {
	p := path(t)
	line, err := (&Entry{Kind: Paid, Run: 1, Key: "k", Charge: 1}).line()
	if err != nil {
		t.Fatal(err)
	}
	tail := NewTail(p)
	for i, part := range [][]byte{line[:10], line[10 : len(line)-1], line[len(line)-1:]} {
		f, err := os.OpenFile(p, os.O_APPEND|os.O_CREATE|os.O_WRONLY, 0o600)
		if err != nil {
			t.Fatal(err)
		}
		if _, err := f.Write(part); err != nil {
			t.Fatal(err)
		}
		f.Close()
		if err := tail.Update(); err != nil {
			t.Fatal(err)
		}
		if want := i / 2; tail.State.Charged != want {
			t.Errorf("after part %d: %d charges, want %d", i, tail.State.Charged, want)
		}
	}
}

func TestATailReadsFilesLargerThanItsBuffer(t *testing.T) {
	p := path(t)
	b := openBook(t, p)
	const n = 1500
	for range n {
		pay(t, b, ada, 1)
	}
	if info, err := os.Stat(p); err != nil || info.Size() < 128<<10 {
		t.Fatalf("the file is too small for this test: %v, %v", info, err)
	}
	tail := NewTail(p)
	if err := tail.Update(); err != nil || tail.State.Charged != n || tail.State.Double() != n-1 {
		t.Errorf("%d charges, %v", tail.State.Charged, err)
	}
}

func TestATailReportsWhatItCannotRead(t *testing.T) {
	p := filepath.Join(t.TempDir(), "ledger")
	if err := os.WriteFile(p, []byte("nonsense\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	if err := NewTail(p).Update(); err == nil {
		t.Error("nonsense was read without an error")
	}
}
