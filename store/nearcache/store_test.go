package nearcache_test

import (
	"context"
	"errors"
	"math"
	"testing"
	"time"

	"github.com/semel-go/semel/store"
	"github.com/semel-go/semel/store/nearcache"
	"github.com/semel-go/semel/store/storetest"
)

func TestClaim_DuplicateOfOwnCall_MakesNoTrip(t *testing.T) {
	w := newWorld(t, nil)
	complete(t, w, "k", time.Hour)
	w.trip(t, 0, "a duplicate", func() {
		f := claim(t, w, "k")
		if d := store.Decide(&f.Record, &store.Call{Fingerprint: proposal("k").Fingerprint}, f.Now); f.Won || d.Action != store.Replay || !f.Record.Outcome.Equal(outcome("kept")) {
			t.Errorf("won %v, %v, outcome %+v", f.Won, d.Action, f.Record.Outcome)
		}
	})
	w.trip(t, 1, "a read of what was reckoned", func() { get(t, w, "k") })
	w.trip(t, 0, "a read after it", func() { get(t, w, "k") })
	if s := w.Stats(); s.Hits != 2 || s.Records != 1 || s.Bytes <= 0 {
		t.Errorf("stats %+v", s)
	}
}

func TestClaim_DuplicateOfOtherProcess_MakesOneTrip(t *testing.T) {
	for name, look := range map[string]func(testing.TB, store.Store, string) store.Found{"claim": claim, "get": get} {
		w := newWorld(t, nil)
		complete(t, w.mem, "k", time.Hour)
		w.trip(t, 1, "the first "+name, func() { look(t, w, "k") })
		w.trip(t, 0, "claims and reads after it", func() {
			claim(t, w, "k")
			get(t, w, "k")
		})
		want := get(t, w.mem, "k")
		if got := claim(t, w, "k"); got.Record.Seen() != want.Record.Seen() || got.Record.Completed != want.Record.Completed || got.Now != want.Now {
			t.Errorf("after a %s: %+v, want %+v", name, got, want)
		}
	}
}

func TestClaim_NotTerminal_AsksStoreEachTime(t *testing.T) {
	for state, make := range map[store.State]func(w *world){
		0:                func(*world) {},
		store.Processing: func(w *world) { claim(t, w, "k") },
		store.Started: func(w *world) {
			p := proposal("k")
			p.State = store.Started
			_, _ = w.Claim(t.Context(), p)
		},
		store.Released: func(w *world) { settleAs(t, w, "k", store.Released) },
		store.Unknown:  func(w *world) { settleAs(t, w, "k", store.Unknown) },
	} {
		w := newWorld(t, nil)
		make(w)
		w.trip(t, 3, state.String(), func() {
			for range 3 {
				_, _ = w.Get(t.Context(), proposal("k").Key)
			}
		})
		if state == 0 {
			continue
		}
		w.trip(t, 3, "claims of what is "+state.String(), func() {
			for range 3 {
				claim(t, w, "k")
			}
		})
	}
}

func settleAs(t testing.TB, w *world, value string, s store.State) {
	t.Helper()
	f := claim(t, w, value)
	if err := w.Settle(t.Context(), f.Record.Lease(), store.Settlement{State: s, Keep: time.Hour}); err != nil {
		t.Fatal(err)
	}
}

func TestLifetime_Record_ExpiresBeforeStores(t *testing.T) {
	const keep, skew = 100 * time.Second, 10 * time.Second
	most := keep - keep>>10 - skew // and a thousandth
	for name, look := range map[string]func(testing.TB, store.Store, string) store.Found{"claim": claim, "get": get} {
		w := newWorld(t, &nearcache.Options{Skew: skew, MaxAge: time.Hour})
		complete(t, w, "k", keep)
		look(t, w, "k")
		w.pass(most - time.Microsecond)
		w.trip(t, 0, name+" just before", func() { look(t, w, "k") })
		w.pass(time.Microsecond)
		w.trip(t, 1, name+" then", func() { look(t, w, "k") })
		w.pass(101 * time.Millisecond) // it was read again meanwhile, so that a thousandth was less
		w.trip(t, 1, name+" once more", func() { look(t, w, "k") })
	}
}

func TestMaxAge_RecordOfStore_IsAskedForAgain(t *testing.T) {
	w := newWorld(t, &nearcache.Options{MaxAge: time.Minute})
	r := complete(t, w.mem, "k", time.Hour)
	get(t, w, "k")
	change := func() { // by another process
		p := proposal("k")
		f := get(t, w.mem, "k")
		if f, err := w.mem.Swap(t.Context(), f.Record.Seen(), p); err != nil || !f.Won {
			t.Fatal(err)
		}
	}
	change()
	w.pass(time.Minute - 1)
	if f := get(t, w, "k"); f.Record.State != store.Completed || f.Record.Owner != r.Record.Owner {
		t.Fatalf("within the age: %v", f.Record.State)
	}
	w.pass(1)
	if f := get(t, w, "k"); f.Record.State != store.Processing {
		t.Errorf("after the age: %v", f.Record.State)
	}
}

// The age counts from the settlement, and the life from the claim.
func TestMaxAge_OwnOutcome_IsAskedForAgain(t *testing.T) {
	w := newWorld(t, &nearcache.Options{MaxAge: time.Minute})
	f := claim(t, w, "k")
	w.pass(10 * time.Minute)
	if err := w.Settle(t.Context(), f.Record.Lease(), settlement(time.Hour)); err != nil {
		t.Fatal(err)
	}
	w.pass(time.Minute - 1)
	w.trip(t, 0, "within the age", func() { claim(t, w, "k") })
	w.pass(1)
	w.trip(t, 1, "after the age", func() { claim(t, w, "k") })
}

// The longest age is one, too: a life that was counted beyond it would be none.
func TestMaxAge_Longest_Works(t *testing.T) {
	w := newWorld(t, &nearcache.Options{MaxAge: math.MaxInt64, Skew: 1})
	f := claim(t, w, "k")
	w.pass(time.Second)
	if err := w.Settle(t.Context(), f.Record.Lease(), settlement(time.Hour)); err != nil {
		t.Fatal(err)
	}
	w.trip(t, 0, "a duplicate of an own call", func() { claim(t, w, "k") })
	w.pass(59 * time.Minute)
	w.trip(t, 0, "a duplicate that comes late", func() { claim(t, w, "k") })
}

func TestSwap_CachedKey_IsSeenAtOnce(t *testing.T) {
	for name, mode := range map[string]storetest.Mode{"answered": storetest.None, "reply lost": storetest.LostReply} {
		w := newWorldBehind(t, nil, func(op storetest.Op, _ int) storetest.Mode {
			if op == storetest.OpSwap {
				return mode
			}
			return storetest.None
		})
		complete(t, w, "k", time.Hour)
		f := get(t, w, "k")
		if _, err := w.Swap(t.Context(), f.Record.Seen(), proposal("k")); (err == nil) != (mode == storetest.None) {
			t.Fatal(err)
		}
		if f := claim(t, w, "k"); f.Record.State != store.Processing {
			t.Errorf("%s: a claim finds it %v", name, f.Record.State)
		}
	}
}

// A claim that was taken over in this process is one of its own.
func TestSwap_TakeOverCompleted_OutcomeIsCached(t *testing.T) {
	w := newWorld(t, nil)
	f := claim(t, w.mem, "k")
	w.pass(2 * time.Minute)
	f, err := w.Swap(t.Context(), f.Record.Seen(), proposal("k"))
	if err != nil || !f.Won {
		t.Fatal(err)
	}
	if err := w.Settle(t.Context(), f.Record.Lease(), settlement(time.Hour)); err != nil {
		t.Fatal(err)
	}
	w.trip(t, 0, "a duplicate", func() {
		if got := claim(t, w, "k"); got.Record.Fence != f.Record.Fence {
			t.Errorf("fence %d, want %d", got.Record.Fence, f.Record.Fence)
		}
	})
}

func TestSettle_NotConfirmed_IsNotCached(t *testing.T) {
	var fail storetest.Mode
	w := newWorldBehind(t, nil, func(op storetest.Op, _ int) storetest.Mode {
		if op == storetest.OpSettle {
			return fail
		}
		return storetest.None
	})
	f := claim(t, w, "k")
	for _, fail = range []storetest.Mode{storetest.Before, storetest.LostReply} {
		if err := w.Settle(t.Context(), f.Record.Lease(), settlement(time.Hour)); err == nil {
			t.Fatal("the fault was not injected")
		}
		w.trip(t, 1, "a duplicate", func() { claim(t, w, "k") })
	}
	fail = storetest.None // sent again, it is confirmed
	w2 := newWorldBehind(t, nil, func(op storetest.Op, n int) storetest.Mode {
		if op == storetest.OpSettle && n == 1 {
			return storetest.LostReply
		}
		return storetest.None
	})
	f = claim(t, w2, "k")
	_ = w2.Settle(t.Context(), f.Record.Lease(), settlement(time.Hour))
	if err := w2.Settle(t.Context(), f.Record.Lease(), settlement(time.Hour)); err != nil {
		t.Fatal(err)
	}
	w2.trip(t, 0, "a duplicate of what was settled by a second sending", func() { claim(t, w2, "k") })
}

func TestSettle_LeaseLost_IsNotCached(t *testing.T) {
	w := newWorld(t, nil)
	mine := claim(t, w, "k")
	w.pass(2 * time.Minute)
	other, err := w.mem.Swap(t.Context(), mine.Record.Seen(), proposal("k"))
	if err != nil || !other.Won {
		t.Fatal(err)
	}
	if err := w.Settle(t.Context(), mine.Record.Lease(), settlement(time.Hour)); !errors.Is(err, store.ErrLeaseLost) {
		t.Fatal(err)
	}
	if f := claim(t, w, "k"); f.Record.Owner != other.Record.Owner || f.Record.State != store.Processing {
		t.Errorf("a duplicate finds %v", f.Record.State)
	}
}

// The store's answer about a key replaces an estimated record.
func TestGet_StoreContradictsEstimate_RemovesIt(t *testing.T) {
	w := newWorld(t, nil)
	complete(t, w, "k", time.Hour)
	f := get(t, w.mem, "k")
	if _, err := w.mem.Swap(t.Context(), f.Record.Seen(), proposal("k")); err != nil {
		t.Fatal(err)
	}
	if f := get(t, w, "k"); f.Record.State != store.Processing {
		t.Fatalf("a read finds it %v", f.Record.State)
	}
	if f := claim(t, w, "k"); f.Record.State != store.Processing {
		t.Errorf("a claim after the read finds it %v", f.Record.State)
	}
}

func TestClaim_StoreDown_CachedDuplicateIsAnswered(t *testing.T) {
	down := false
	w := newWorldBehind(t, nil, func(storetest.Op, int) storetest.Mode {
		if down {
			return storetest.Before
		}
		return storetest.None
	})
	complete(t, w, "k", time.Hour)
	down = true
	claim(t, w, "k")
	if _, err := w.Claim(t.Context(), proposal("new")); !isInjected(err) {
		t.Errorf("a claim of a new key: %v", err)
	}
	if _, err := w.Get(t.Context(), proposal("new").Key); !isInjected(err) || errors.Is(err, store.ErrNotFound) {
		t.Errorf("a read of a new key: %v", err)
	}
}

func TestClaim_ContextEnded_IsError(t *testing.T) {
	w := newWorld(t, nil)
	complete(t, w, "k", time.Hour)
	get(t, w, "k")
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if _, err := w.Claim(ctx, proposal("k")); !errors.Is(err, context.Canceled) {
		t.Errorf("Claim: %v", err)
	}
	if _, err := w.Get(ctx, proposal("k").Key); !errors.Is(err, context.Canceled) {
		t.Errorf("Get: %v", err)
	}
}

func TestNew_InvalidOptions_AreNamed(t *testing.T) {
	if _, err := nearcache.New(nil, nil); err == nil {
		t.Error("no store is accepted")
	}
	for _, o := range []nearcache.Options{{MaxBytes: -1}, {MaxAge: -1}, {Skew: -1}} {
		if _, err := nearcache.New(newWorld(t, nil).mem, &o); err == nil {
			t.Errorf("%+v is accepted", o)
		}
	}
}

func TestUnwrap_OptionalInterfaces_AreThoseOfStore(t *testing.T) {
	w := newWorld(t, nil)
	if l, ok := store.As[store.Lister](w.Store); !ok || l != store.Lister(w.mem) {
		t.Error("the store behind the cache can be searched, and is not found")
	}
	if _, ok := store.As[store.Waiter](w.Store); ok {
		t.Error("a Waiter is found that nobody is")
	}
}
