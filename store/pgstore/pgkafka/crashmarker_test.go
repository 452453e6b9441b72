package pgkafka

import (
	"context"
	"errors"
	"testing"

	"github.com/semel-go/semel/store/pgstore/internal/pgwire"
)

// wantBegun begins at an offset, as so many have in a row.
func wantBegun(t *testing.T, n *CrashMarker, at int64, times int) {
	t.Helper()
	if got, err := n.Begin(t.Context(), at); err != nil || got != times {
		t.Errorf("the beginnings at %d are %d, %v; want %d", at, got, err, times)
	}
}

func wantTries(t *testing.T, n *CrashMarker, tries ...int) {
	t.Helper()
	open := false
	for offset, want := range tries {
		if got := n.Tries(int64(offset)); got != want {
			t.Errorf("offset %d has %d tries, want %d", offset, got, want)
		}
		open = open || want > 0
	}
	if n.HasTries() != open {
		t.Errorf("HasTries says %v", n.HasTries())
	}
}

// A member that starts at the same offset as the one before counts. Each member counts
// once, and not after End.
func TestCrashMarker_SameOffset_CountsStarts(t *testing.T) {
	p := newShop(t, nil)
	first := NewCrashMarker(p.st, orders)
	wantBegun(t, first, 5, 1)
	wantBegun(t, first, 5, 1) // the partition came back to it
	wantBegun(t, NewCrashMarker(p.st, orders), 5, 2)
	third := NewCrashMarker(p.st, orders)
	wantBegun(t, third, 5, 3)
	if err := third.End(t.Context()); err != nil {
		t.Error(err)
	}
	wantBegun(t, NewCrashMarker(p.st, orders), 5, 3)
	wantBegun(t, NewCrashMarker(p.st, orders), 6, 1) // somebody got past it
	wantBegun(t, NewCrashMarker(p.st, orders), 6, 2)
	wantBegun(t, NewCrashMarker(p.st, orders), 2, 1) // set back, by people
	other := orders
	other.Partition++
	wantBegun(t, NewCrashMarker(p.st, other), 2, 1)
	anew := orders
	anew.TopicID = "id-2"
	wantBegun(t, NewCrashMarker(p.st, anew), 2, 1)
}

// A try that has no end outlives who made it; one that has ended leaves nothing.
func TestCrashMarker_TriesWithoutEnd_Kept(t *testing.T) {
	p := newShop(t, nil)
	ok := func(err error) {
		t.Helper()
		if err != nil {
			t.Error(err)
		}
	}
	first := NewCrashMarker(p.st, orders)
	wantBegun(t, first, 0, 1)
	ok(first.Try(t.Context(), 3))
	second := NewCrashMarker(p.st, orders)
	wantBegun(t, second, 0, 2)
	wantTries(t, second, 0, 0, 0, 1)
	ok(second.Try(t.Context(), 1)) // which takes nothing from the other
	ok(second.Ended(t.Context(), 1))
	ok(second.Try(t.Context(), 2))
	second.Done(2)
	ok(second.Try(t.Context(), 3))
	wantTries(t, second, 0, 0, 0, 2)
	third := NewCrashMarker(p.st, orders)
	wantBegun(t, third, 1, 1)
	wantTries(t, third, 0, 0, 0, 2)
	ok(third.Try(t.Context(), 3))
	ok(third.Ended(t.Context(), 3))
	fourth := NewCrashMarker(p.st, orders)
	wantBegun(t, fourth, 1, 2)
	wantTries(t, fourth, 0, 0, 0, 2)
	past := NewCrashMarker(p.st, orders)
	wantBegun(t, past, 4, 1)
	wantTries(t, past, 0, 0, 0, 0)
}

// If people set a consumer back or recreate a topic, earlier tries do not count.
func TestCrashMarker_OtherTopicOrOffset_Ignored(t *testing.T) {
	anew := orders
	anew.TopicID = "id-2"
	for name, next := range map[string]struct {
		of TopicPartition
		at int64
	}{"set back": {orders, 1}, "another topic": {anew, 2}} {
		p := newShop(t, nil)
		n := NewCrashMarker(p.st, orders)
		wantBegun(t, n, 2, 1)
		if err := n.Try(t.Context(), 3); err != nil {
			t.Fatal(err)
		}
		after := NewCrashMarker(p.st, next.of)
		wantBegun(t, after, next.at, 1)
		if wantTries(t, after, 0, 0, 0, 0); t.Failed() {
			t.Log(name)
		}
		if err := n.Try(t.Context(), 3); !errors.Is(err, ErrFenced) {
			t.Errorf("%s: who had it before has noted a try: %v", name, err)
		}
	}
}

// One that was frozen goes on when another has begun: it writes nothing, and may
// try nothing.
func TestCrashMarker_FencedMember_CannotWrite(t *testing.T) {
	p := newShop(t, nil)
	zombie, owner := NewCrashMarker(p.st, orders), NewCrashMarker(p.st, orders)
	wantBegun(t, zombie, 0, 1)
	wantBegun(t, owner, 0, 2)
	for what, err := range map[string]error{
		"try": zombie.Try(t.Context(), 0), "end of a try": zombie.Ended(t.Context(), 0), "end": zombie.End(t.Context()),
	} {
		if !errors.Is(err, ErrFenced) {
			t.Errorf("its %s: %v, want ErrFenced", what, err)
		}
	}
	wantTries(t, zombie, 0)
	third := NewCrashMarker(p.st, orders)
	wantBegun(t, third, 0, 3)
	wantTries(t, third, 0)
}

func TestForget_RemovesCrashMarkers(t *testing.T) {
	p := newShop(t, nil)
	n := NewCrashMarker(p.st, orders)
	wantBegun(t, n, 0, 1)
	if err := Forget(t.Context(), p.st, orders.Consumer, orders.Topic); err != nil {
		t.Fatal(err)
	}
	if rows := p.ask(t, "SELECT count(*)::int FROM "+pgwire.DatabaseOf(p.st).Schema+".semel_crash_marker"); rows != 0 {
		t.Errorf("%d markers are left", rows)
	}
	if err := n.Try(t.Context(), 0); !errors.Is(err, ErrFenced) {
		t.Errorf("a forgotten one: %v, want ErrFenced", err)
	}
	wantBegun(t, n, 0, 1)
}

// A try that cannot be written is not counted in the row, nor in memory.
func TestCrashMarker_TryNotWritten_NotCounted(t *testing.T) {
	p := newShop(t, nil)
	n := NewCrashMarker(p.st, orders)
	wantBegun(t, n, 0, 1)
	gone, cancel := context.WithCancel(t.Context())
	cancel()
	if err := n.Try(gone, 0); err == nil || errors.Is(err, ErrFenced) {
		t.Errorf("got %v", err)
	}
	wantTries(t, n, 0)
	for _, of := range []TopicPartition{{Topic: "t"}, {Consumer: "c"}, {Consumer: "c", Topic: "t", Partition: -1}} {
		if _, err := NewCrashMarker(p.st, of).Begin(t.Context(), 0); err == nil {
			t.Errorf("%+v was taken", of)
		}
	}
	if _, err := n.Begin(t.Context(), -1); err == nil {
		t.Error("a negative offset was taken")
	}
}

// The end of a try cannot be noted, as in an outage: it is when the member begins
// again, and the try does not count.
func TestCrashMarker_EndNotWritten_WrittenLater(t *testing.T) {
	for name, again := range map[string]func(n *CrashMarker) error{
		"it begins again": func(n *CrashMarker) error { _, err := n.Begin(t.Context(), 0); return err },
		"another try":     func(n *CrashMarker) error { return n.Try(t.Context(), 1) },
	} {
		p := newShop(t, nil)
		n := NewCrashMarker(p.st, orders)
		wantBegun(t, n, 0, 1)
		if err := n.Try(t.Context(), 0); err != nil {
			t.Fatal(err)
		}
		gone, cancel := context.WithCancel(t.Context())
		cancel()
		if err := n.Ended(gone, 0); err == nil {
			t.Error("it was noted")
		}
		if err := again(n); err != nil {
			t.Errorf("%s: %v", name, err)
		}
		next := NewCrashMarker(p.st, orders)
		wantBegun(t, next, 0, 2)
		if next.Tries(0) != 0 {
			t.Errorf("%s: a try that has ended counts", name)
		}
	}
}
