package memstore_test

import (
	"errors"
	"fmt"
	"math"
	"strings"
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

func TestTheCallersMemoryIsNotKept(t *testing.T) {
	s := newClocked()
	outcome := func() store.Outcome {
		return store.Outcome{Body: []byte("kept"), Header: []store.Header{{Name: "A", Value: "kept"}}}
	}
	spoil := func(o store.Outcome) { o.Body[0], o.Header[0].Value = 'X', "X" }
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
		spoil(o)
		if f, err := s.Get(t.Context(), r.Key); err != nil || !f.Record.Outcome.Equal(outcome()) {
			t.Errorf("%s: the caller changed what is kept: %+v, error %v", name, f.Record.Outcome, err)
		}
	}
}

// A row tells in 32 bits where it ends, so what is much larger is refused, with
// nothing changed, and leaves a tombstone.
func TestAnOutcomeThatARowCannotHoldIsRefused(t *testing.T) {
	if most := memstore.MostOutcome; most > math.MaxInt32/2 {
		t.Errorf("outcomes of %d bytes are taken, and a row has no more", most)
	}
	for name, o := range map[string]store.Outcome{
		"a body":  {Body: make([]byte, 101)},
		"headers": {Body: make([]byte, 50), Header: []store.Header{{Name: strings.Repeat("a", 26), Value: strings.Repeat("b", 25)}}},
	} {
		s := memstore.Small(nil, 100)
		r := claimed(t, s, "k")
		end := store.Settlement{State: store.Completed, Attempt: 1, Outcome: o, Keep: time.Minute}
		p := proposal("k", 2)
		p.State, p.Outcome = store.Completed, o
		if err := s.Settle(t.Context(), r.Lease(), end); !errors.Is(err, store.ErrTooLarge) {
			t.Errorf("%s: Settle: %v", name, err)
		}
		if f, err := s.Swap(t.Context(), r.Seen(), p); !errors.Is(err, store.ErrTooLarge) || f.Won {
			t.Errorf("%s: Swap: %+v, %v", name, f, err)
		}
		if f, err := s.Get(t.Context(), r.Key); err != nil || f.Record.State != store.Processing || f.Record.Fence != r.Fence {
			t.Errorf("%s: then it is %+v, %v", name, f.Record, err)
		}
		end.Outcome = store.Outcome{Gone: true}
		if err := s.Settle(t.Context(), r.Lease(), end); err != nil {
			t.Errorf("%s: a tombstone: %v", name, err)
		}
	}
}

func TestWithoutAClockItIsTheMachines(t *testing.T) {
	for _, o := range []*memstore.Options{nil, {}} {
		before := time.Now().Truncate(time.Microsecond)
		f, err := memstore.New(o).Claim(t.Context(), proposal("k", 1))
		if err != nil || f.Now.Before(before) || f.Now.After(time.Now()) {
			t.Errorf("Now of a claim made after %v is %v, error %v", before, f.Now, err)
		}
	}
}

func TestACursorOfAnotherStoreIsRefused(t *testing.T) {
	s := memstore.New(nil)
	for _, c := range []store.Cursor{"x", "-1", "256", "1.5", "99999999999999999999"} {
		if res, err := s.Sweep(t.Context(), c, 10); err == nil {
			t.Errorf("Sweep from %q: %+v, want an error", c, res)
		}
	}
	for _, c := range []store.Cursor{"", "0", "7"} {
		if _, err := s.Sweep(t.Context(), c, 10); err != nil {
			t.Errorf("Sweep from %q: %v", c, err)
		}
	}
}

// Whatever becomes of the lapsed records, or does not, a pass hands back each of
// them once.
func TestAPassHandsBackEachLapsedRecordOnce(t *testing.T) {
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
				t.Fatalf("limit %d: record %d was handed back %d times", limit, i, c)
			}
		}
	}
}

// The floor is the store's, and not a key's: whatever was swept, no later claim
// gets a lower fence, even on a clock that was set back.
func TestTheFloorHoldsForEachKey(t *testing.T) {
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

// Claims of one key that race with sweeps and the end of its record always see
// the fence grow.
func TestTheFenceGrowsThroughClaimsAndSweepsAtOnce(t *testing.T) {
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
