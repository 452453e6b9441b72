package semel_test

import (
	"fmt"
	"slices"
	"testing"
	"time"

	"github.com/semel-go/semel"
	"github.com/semel-go/semel/store"
)

// owners is what a record says of its former owners, a line for each.
func owners(r store.Record) (lines []string) {
	for i := range r.FormerOwners {
		o := &r.FormerOwners[i]
		lines = append(lines, fmt.Sprintf("%s, attempt %d: %s", o.Holder, o.Attempt, o.End()))
	}
	return lines
}

func wantOwners(t testing.TB, r store.Record, want ...string) {
	t.Helper()
	if got := owners(r); !slices.Equal(got, want) {
		t.Fatalf("former owners:\n got %q\nwant %q", got, want)
	}
}

func TestFormerOwners_EachChangeOfOwner_IsKept(t *testing.T) {
	st, advance := newClockedStore()
	g := guard(t, st, &semel.Options{Holder: "live/2"})
	dead := crash(t, st, semel.Retry, "k", 30*time.Second)
	advance(time.Minute)
	want := []string{"dead/1, attempt 1: lease expired, then taken over"}
	_, err := g.Run(t.Context(), ann("k"), fail(errBoom))
	wantErr(t, err, errBoom)
	r := record(t, g, "k")
	wantOwners(t, r, want...)
	if o := r.FormerOwners[0]; o.Owner != dead.Owner || o.Fence != dead.Fence || !o.Ended.Equal(dead.Until) {
		t.Errorf("the former owner is %+v, want the one of %+v", o, dead)
	}
	_, _ = g.Run(t.Context(), ann("k"), fail(semel.Final(errBoom)))
	want = append(want, "live/2, attempt 2: released, then claimed again")
	r = wantState(t, g, "k", store.Failed)
	wantOwners(t, r, want...)
	if err := g.Reopen(t.Context(), r, "eve: test"); err != nil {
		t.Fatal(err)
	}
	want = append(want, "live/2, attempt 3: failed, then reopened")
	wantOwners(t, record(t, g, "k"), want...)
	for range 2 { // the second is a replay
		if _, err := g.Run(t.Context(), ann("k"), answer("done")); err != nil {
			t.Fatal(err)
		}
		wantOwners(t, record(t, g, "k"), append(want, "live/2, attempt 0: released, then claimed again")...)
	}
	advance(25 * time.Hour)
	if _, err := g.Run(t.Context(), ann("k"), answer("new life")); err != nil {
		t.Fatal(err)
	}
	wantOwners(t, record(t, g, "k"))
}

func TestFormerOwners_Parked_SaysHowItWasResolved(t *testing.T) {
	st, advance := newClockedStore()
	g := parking(t, st, reconcilerOf(semel.Verdict{}, nil))
	for key, verdict := range map[string]semel.Verdict{
		"it happened": semel.Happened("x"), "it did not happen": semel.DidNotHappen(), "it failed": semel.FailedForGood(nil),
	} {
		crash(t, st, semel.Park, key, 30*time.Second)
		advance(time.Minute)
		_, err := g.Run(t.Context(), ann(key), never(t)) // parks it, and asks the reconciler, which does not know
		wantErr(t, err, semel.ErrParked)
		r := wantState(t, g, key, store.Unknown)
		if len(r.FormerOwners) != 2 {
			t.Fatalf("former owners %q, want 2", owners(r))
		}
		holder := r.FormerOwners[1].Holder
		want := []string{"dead/1, attempt 1: lease expired, then parked", holder + ", attempt 1: parked, then claimed again"}
		wantOwners(t, r, want...)
		if err := g.Resolve(t.Context(), r, verdict); err != nil {
			t.Fatal(err)
		}
		wantOwners(t, record(t, g, key), append(want, r.Holder+", attempt 1: parked, then resolved: "+key)...)
	}
}

func TestFormerOwners_ReservationRedeemed_HasNone(t *testing.T) {
	st, _ := newClockedStore()
	g := guard(t, st, nil)
	call := redeem(t, g, reserve(t, g, ann("k")).Token)
	if _, err := g.Run(t.Context(), call, answer("done")); err != nil {
		t.Fatal(err)
	}
	wantOwners(t, record(t, g, "k"))
}
