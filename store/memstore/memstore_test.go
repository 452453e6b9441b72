package memstore_test

import (
	"fmt"
	"sync"
	"testing"
	"time"

	"github.com/semel-go/semel/store"
	"github.com/semel-go/semel/store/memstore"
)

func proposal(value string, owner byte) store.Proposal {
	return store.Proposal{
		Key: store.Key{Operation: "op", Tenant: "t", Value: value}, State: store.Processing, Owner: store.Owner{owner}, Attempt: 1,
		Lease: time.Minute, Keep: time.Minute,
	}
}

// claimed wins a claim.
func claimed(t testing.TB, s store.Store, value string) store.Record {
	t.Helper()
	f, err := s.Claim(t.Context(), proposal(value, 1))
	if err != nil || !f.Won {
		t.Fatalf("Claim: won %v, error %v", f.Won, err)
	}
	return f.Record
}

func TestStore_CallerChangesOutcome_KeepsItsCopy(t *testing.T) {
	s := newClocked()
	outcome := func() store.Outcome {
		return store.Outcome{Body: []byte("kept"), Header: []store.Header{{Name: "A", Value: "kept"}}}
	}
	overwrite := func(o store.Outcome) { o.Body[0], o.Header[0].Value = 'X', "X" }
	for name, keep := range map[string]func(r store.Record, o store.Outcome) error{
		"Settle": func(r store.Record, o store.Outcome) error {
			return s.Settle(t.Context(), r.Lease(), store.Settlement{State: store.Completed, Outcome: o, Keep: time.Minute})
		},
		"Swap": func(r store.Record, o store.Outcome) error {
			p := proposal(r.Key.Value, 2)
			p.State, p.Outcome = store.Failed, o
			_, err := s.Swap(t.Context(), r.Seen(), p)
			return err
		},
	} {
		r, o := claimed(t, s, name), outcome()
		if err := keep(r, o); err != nil {
			t.Fatalf("%s: %v", name, err)
		}
		overwrite(o)
		if f, err := s.Get(t.Context(), r.Key); err != nil || !f.Record.Outcome.Equal(outcome()) {
			t.Errorf("%s: the caller changed what is kept: %+v, error %v", name, f.Record.Outcome, err)
		}
	}
}

func TestNew_NoClock_UsesTimeNow(t *testing.T) {
	for _, o := range []*memstore.Options{nil, {}} {
		before := time.Now().Truncate(time.Microsecond)
		f, err := memstore.New(o).Claim(t.Context(), proposal("k", 1))
		if err != nil || f.Now.Before(before) || f.Now.After(time.Now()) {
			t.Errorf("Now of a claim made after %v is %v, error %v", before, f.Now, err)
		}
	}
}

func TestSweep_CursorOfAnotherStore_IsError(t *testing.T) {
	s := memstore.New(nil)
	for _, c := range []store.Cursor{"x", "7", "after"} {
		if res, err := s.Sweep(t.Context(), c, 10); err == nil {
			t.Errorf("Sweep from %q: %+v, want an error", c, res)
		}
	}
	for _, c := range []store.Cursor{"", "after:", "after:op\x00t\x00k"} {
		if _, err := s.Sweep(t.Context(), c, 10); err != nil {
			t.Errorf("Sweep from %q: %v", c, err)
		}
	}
}

func TestSweep_WholePass_ReturnsEachLapsedRecordOnce(t *testing.T) {
	for _, limit := range []int{1, 7, 1000} {
		s := newClocked()
		const n = 500
		for i := range n {
			claimed(t, s, fmt.Sprint(i))
		}
		s.clock.Advance(2 * time.Minute)
		seen := map[string]int{}
		for from := store.Cursor(""); ; {
			res, err := s.Sweep(t.Context(), from, limit)
			if err != nil || len(res.Lapsed) > limit {
				t.Fatalf("limit %d: %d lapsed, error %v", limit, len(res.Lapsed), err)
			}
			for i := range res.Lapsed {
				seen[res.Lapsed[i].Key.Value]++
			}
			if from = res.Next; from == "" {
				break
			}
		}
		for i := range n {
			if c := seen[fmt.Sprint(i)]; c != 1 {
				t.Fatalf("limit %d: record %d was returned %d times", limit, i, c)
			}
		}
	}
}

// The swept fence is one for all keys: after a sweep no claim of any key gets a
// lower fence, even if the clock was set back.
func TestClaim_AfterSweepAndClockSetBack_FenceGrowsForEachKey(t *testing.T) {
	s := newClocked()
	r := claimed(t, s, "swept")
	if err := s.Settle(t.Context(), r.Lease(), store.Settlement{State: store.Completed, Keep: time.Second}); err != nil {
		t.Fatal(err)
	}
	s.clock.Advance(time.Minute)
	if res, err := s.Sweep(t.Context(), "", 10); err != nil || res.Deleted != 1 {
		t.Fatalf("Sweep: %+v, error %v", res, err)
	}
	s.clock.Advance(-time.Hour)
	for i := range 300 {
		if other := claimed(t, s, fmt.Sprint("new", i)); other.Fence <= r.Fence {
			t.Fatalf("claim %d has fence %d, and one of %d was swept", i, other.Fence, r.Fence)
		}
	}
}

func TestClaim_ConcurrentClaimsAndSweeps_EachFenceHasOneOwner(t *testing.T) {
	s := newClocked()
	var mu sync.Mutex
	fences := map[uint64]store.Owner{}
	var wg sync.WaitGroup
	for g := range 4 {
		wg.Go(func() {
			for i := range 300 {
				p := proposal("k", byte(g+1))
				p.Owner[1], p.Owner[2] = byte(i), byte(i>>8)
				f, err := s.Claim(t.Context(), p)
				if err != nil {
					t.Errorf("Claim: %v", err)
					return
				}
				if f.Won {
					mu.Lock()
					if other, twice := fences[f.Record.Fence]; twice {
						t.Errorf("fence %d has the owners %v and %v", f.Record.Fence, other, p.Owner)
					}
					fences[f.Record.Fence] = p.Owner
					mu.Unlock()
					_ = s.Settle(t.Context(), f.Record.Lease(), store.Settlement{State: store.Released})
				}
				if _, err := s.Sweep(t.Context(), "", 10); err != nil {
					t.Errorf("Sweep: %v", err)
				}
			}
		})
	}
	wg.Wait()
	if len(fences) < 4 {
		t.Errorf("only %d claims were won", len(fences))
	}
}

// A caller that appends to a body it was given must not write to memory that
// another caller reads.
func TestGet_CallerAppendsToBody_LeavesOtherReadersBody(t *testing.T) {
	s := newClocked()
	r := claimed(t, s, "k")
	body := make([]byte, 4, 100)
	if err := s.Settle(t.Context(), r.Lease(), store.Settlement{State: store.Completed, Outcome: store.Outcome{Body: body}, Keep: time.Minute}); err != nil {
		t.Fatal(err)
	}
	f, err := s.Get(t.Context(), r.Key)
	if err != nil || len(f.Record.Outcome.Body) != 4 || cap(f.Record.Outcome.Body) != 4 {
		t.Errorf("the body has %d bytes and capacity %d, want 4 and 4; error %v", len(f.Record.Outcome.Body), cap(f.Record.Outcome.Body), err)
	}
}
