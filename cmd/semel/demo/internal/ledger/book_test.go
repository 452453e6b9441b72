package ledger

import (
	"errors"
	"os"
	"path/filepath"
	"testing"
)

var ada = ID{"ada", "key-1"}

func openBook(t *testing.T, path string) *Book {
	t.Helper()
	b, err := Open(path)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { b.Close() })
	return b
}

func begin(t *testing.T, b *Book, id ID, fence uint64) int {
	t.Helper()
	run, err := b.Begin(id, fence)
	if err != nil {
		t.Fatal(err)
	}
	return run
}

// pay is a whole payment.
func pay(t *testing.T, b *Book, id ID, fence uint64) Entry {
	t.Helper()
	run := begin(t, b, id, fence)
	e, err := b.Charge(run, id, fence, "order-1", 4200)
	if err != nil {
		t.Fatal(err)
	}
	if err := b.End(run); err != nil {
		t.Fatal(err)
	}
	return e
}

func ask(t *testing.T, b *Book, id ID, fence uint64) (Answer, Entry) {
	t.Helper()
	a, e, err := b.Ask(id, fence)
	if err != nil {
		t.Fatal(err)
	}
	return a, e
}

func path(t *testing.T) string { return filepath.Join(t.TempDir(), "ledger") }

func TestBook_RepeatedRequest_ChargesAgain(t *testing.T) {
	b := openBook(t, path(t))
	first, second := pay(t, b, ada, 1), pay(t, b, ada, 1)
	if first.Charge != 1 || second.Charge != 2 || b.s.Double() != 1 {
		t.Errorf("charges %d and %d, %d double; a naive ledger charges twice", first.Charge, second.Charge, b.s.Double())
	}
	if string(first.Receipt()) == string(second.Receipt()) {
		t.Error("two charges have the same receipt, so an unequal replay would not be seen")
	}
}

func TestBook_ProcessKilled_IsTheSame(t *testing.T) {
	p := path(t)
	b := openBook(t, p)
	charged := pay(t, b, ada, 7)
	begun, after := begin(t, b, ID{"ada", "key-2"}, 8), begin(t, b, ID{"bob", "key-1"}, 9)
	if _, err := b.Charge(after, ID{"bob", "key-1"}, 9, "order-2", 1); err != nil {
		t.Fatal(err)
	}
	if a, _ := ask(t, b, ID{"ada", "key-2"}, 10); a != Unsure {
		t.Fatalf("a request that is being worked on: %s", a)
	}
	if a, _ := ask(t, b, ID{"eve", "key-1"}, 10); a != No {
		t.Fatalf("a request that never came: %s", a)
	}
	_ = begun // and then a kill: nothing is closed or flushed

	again := openBook(t, p)
	if a, e := ask(t, again, ada, 11); a != Yes || string(e.Receipt()) != string(charged.Receipt()) {
		t.Errorf("a charge from before the kill: %s with %s", a, e.Receipt())
	}
	if a, _ := ask(t, again, ID{"bob", "key-1"}, 11); a != Yes {
		t.Errorf("a charge that the kill left without its answer: %s", a)
	}
	if a, _ := ask(t, again, ID{"ada", "key-2"}, 11); a != No {
		t.Errorf("a request that the kill took before its charge: %s", a)
	}
	if !again.s.stale(ID{"eve", "key-1"}, 10) {
		t.Error("a final no was forgotten")
	}
	if s := again.s; s.CutBefore != 1 || s.CutAfter != 1 || s.Boots != 2 || s.Runs != 3 {
		t.Errorf("cut %d before and %d after the charge, %d boots, %d runs", s.CutBefore, s.CutAfter, s.Boots, s.Runs)
	}
	if next := pay(t, again, ada, 12); next.Charge != 3 || next.Run != 4 {
		t.Errorf("numbers are given again: charge %d of run %d", next.Charge, next.Run)
	}
}

func TestBook_SaidNo_StaysNo(t *testing.T) {
	p := path(t)
	b := openBook(t, p)
	if a, _ := ask(t, b, ada, 20); a != No {
		t.Fatalf("got %s", a)
	}
	for _, fence := range []uint64{0, 1, 20} { // none, an early one, the last that may be late
		run := begin(t, b, ada, fence)
		if _, err := b.Charge(run, ada, fence, "order-1", 1); !errors.Is(err, ErrStale) {
			t.Errorf("fence %d charged after the no: %v", fence, err)
		}
		if err := b.End(run); err != nil {
			t.Fatal(err)
		}
	}
	again := openBook(t, p)
	if _, err := again.Charge(begin(t, again, ada, 20), ada, 20, "order-1", 1); !errors.Is(err, ErrStale) {
		t.Errorf("a kill made the ledger forget its no: %v", err)
	}
	if e := pay(t, again, ada, 21); e.Charge != 1 {
		t.Errorf("the next run, with a newer fence, got charge %d", e.Charge)
	}
	if again.s.Refused != 4 {
		t.Errorf("%d late requests were counted, want 4", again.s.Refused)
	}
}

func TestBook_SaidNo_OtherTenantIsCharged(t *testing.T) {
	b := openBook(t, path(t))
	ask(t, b, ada, 20)
	if e := pay(t, b, ID{"bob", ada.Key}, 5); e.Charge != 1 {
		t.Errorf("got charge %d", e.Charge)
	}
}

func TestBook_FrozenRequestAfterNo_ChargesNothing(t *testing.T) {
	b := openBook(t, path(t))
	// The question overtakes a request that is still on the wire.
	if a, _ := ask(t, b, ada, 30); a != No {
		t.Fatalf("got %s", a)
	}
	late := begin(t, b, ada, 29)
	if a, _ := ask(t, b, ada, 31); a != Unsure {
		t.Errorf("asked while the late request is worked on: %s", a)
	}
	if _, err := b.Charge(late, ada, 29, "order-1", 1); !errors.Is(err, ErrStale) {
		t.Errorf("the late request charged: %v", err)
	}
}

func TestBook_HalfWrittenLine_DoesNotCount(t *testing.T) {
	p := path(t)
	b := openBook(t, p)
	pay(t, b, ada, 1)
	f, err := os.OpenFile(p, os.O_APPEND|os.O_WRONLY, 0)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := f.WriteString(`{"t":"charge","run":2,"key":"key-1"`); err != nil {
		t.Fatal(err)
	}
	f.Close()
	again := openBook(t, p)
	if again.s.Charged != 1 {
		t.Errorf("%d charges, want 1", again.s.Charged)
	}
	if e := pay(t, again, ada, 2); e.Charge != 2 {
		t.Errorf("got charge %d, want 2", e.Charge)
	}
	if third := openBook(t, p); third.s.Charged != 2 {
		t.Errorf("%d charges after the next boot, want 2", third.s.Charged)
	}
}

func TestBook_OtherFile_Refused(t *testing.T) {
	p := path(t)
	if err := os.WriteFile(p, []byte("name,amount\nada,3\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	if _, err := Open(p); err == nil {
		t.Error("a CSV file was taken for a ledger")
	}
	if got, _ := os.ReadFile(p); string(got) != "name,amount\nada,3\n" {
		t.Errorf("the file was changed to %q", got)
	}
}

func TestBook_WriteFails_WritesNothingMore(t *testing.T) {
	b := openBook(t, path(t))
	b.j.Close() // as a full disk: part of a line may be there
	if _, err := b.Begin(ada, 1); err == nil {
		t.Fatal("a write to a closed file succeeded")
	}
	if _, _, err := b.Ask(ada, 2); err == nil {
		t.Error("a no was given that is not kept")
	}
	if b.s.Runs != 0 || b.s.stale(ada, 1) {
		t.Error("what was not written counts")
	}
}
