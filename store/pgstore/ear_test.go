package pgstore

import (
	"context"
	"testing"
	"time"

	"github.com/jackc/pgx/v5/pgtype"
)

// One who waited for an end that was told leaves late: the place is another's.
func TestWhoLeavesLateTakesNobodysPlace(t *testing.T) {
	e := &ear{hears: true, by: map[pgtype.UUID]*listener{}}
	id := idOf(testKey("k"))
	first, err := e.join(id)
	if err != nil {
		t.Fatal(err)
	}
	e.end(id, nil)
	second, err := e.join(id)
	if err != nil {
		t.Fatal(err)
	}
	e.leave(first)
	e.end(id, nil)
	for name, l := range map[string]*listener{"first": first, "second": second} {
		select {
		case <-l.told:
		default:
			t.Errorf("the %s is not told", name)
		}
	}
	e.leave(second)
	if len(e.by) != 0 {
		t.Errorf("%d places are left", len(e.by))
	}
}

// A server that hangs must not cost memory without end.
func TestWhatCannotBeSaidIsNotKept(t *testing.T) {
	m := &mouth{wake: make(chan struct{}, 1)}
	for range unspoken + 10 {
		m.say(pgtype.UUID{})
	}
	if n := len(m.ended) / idSize; n != unspoken {
		t.Errorf("%d ends wait to be said, want %d", n, unspoken)
	}
}

// A claim that was taken over before somebody waits for it is in the same state,
// and another's.
func TestWaitSeesATakeOverBeforeIt(t *testing.T) {
	s := openNew(t, &Options{Notify: true})
	was := claim(t, s, "k")
	if f, err := s.Swap(t.Context(), was.Seen(), proposal("k")); err != nil || !f.Won {
		t.Fatalf("won %v, error %v", f.Won, err)
	}
	ctx, cancel := context.WithTimeout(t.Context(), 10*time.Second)
	defer cancel()
	if err := s.Wait(ctx, was.Seen()); err != nil {
		t.Errorf("got %v", err)
	}
}
