package sweep_test

import (
	"context"
	"errors"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/semel-go/semel"
	"github.com/semel-go/semel/store"
	"github.com/semel-go/semel/store/memstore"
	"github.com/semel-go/semel/sweep"
)

// hangingStore is a store whose steps and swaps may hang until their context ends.
type hangingStore struct {
	store.Store
	stepHangs func(from store.Cursor) bool
	swapHangs bool
	next      map[store.Cursor]store.Cursor // the pass, if it is not the inner store's
	steps     []store.Cursor
}

func (s *hangingStore) Sweep(ctx context.Context, from store.Cursor, limit int) (store.SweepResult, error) {
	s.steps = append(s.steps, from)
	if s.stepHangs != nil && s.stepHangs(from) {
		<-ctx.Done()
		return store.SweepResult{}, ctx.Err()
	}
	if s.next != nil {
		return store.SweepResult{Next: s.next[from]}, nil
	}
	return s.Store.Sweep(ctx, from, limit)
}

func (s *hangingStore) Swap(ctx context.Context, seen store.Seen, p store.Proposal) (store.Found, error) {
	if s.swapHangs {
		<-ctx.Done()
		return store.Found{}, ctx.Err()
	}
	return s.Store.Swap(ctx, seen, p)
}

// Each request of a pass ends after StoreTimeout, 30 s by default.
func TestOnce_StoreHangs_EndsAfterStoreTimeout(t *testing.T) {
	for name, c := range map[string]struct {
		st    hangingStore
		given time.Duration
		want  time.Duration
	}{
		"a step":             {hangingStore{stepHangs: func(store.Cursor) bool { return true }}, 2 * time.Second, 2 * time.Second},
		"a step, by default": {hangingStore{stepHangs: func(store.Cursor) bool { return true }}, 0, 30 * time.Second},
		"a recovery":         {hangingStore{swapHangs: true}, 2 * time.Second, 2 * time.Second},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				mem := memstore.New(nil)
				crash(t, mem, "dead", store.Proposal{Lease: time.Millisecond})
				time.Sleep(time.Second)
				c.st.Store = mem
				start := time.Now()
				_, err := sweep.Once(t.Context(), &c.st, &sweep.Options{StoreTimeout: c.given, Rest: -1})
				if took := time.Since(start); took != c.want || !errors.Is(err, semel.ErrUnavailable) || !errors.Is(err, context.DeadlineExceeded) || !strings.Contains(err.Error(), "StoreTimeout, "+c.want.String()) {
					t.Errorf("it took %v, error %v; want %v", took, err, c.want)
				}
			})
		})
	}
}

// A pass of Run begins where the last one failed, so that a table whose pass takes
// longer than the store's outages are apart is swept to its end.
func TestRun_StepFails_NextPassGoesOnThere(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		failed := false
		st := &hangingStore{Store: memstore.New(nil), next: map[store.Cursor]store.Cursor{"": "1", "1": "2", "2": "3", "3": ""}}
		st.stepHangs = func(from store.Cursor) (hangs bool) {
			hangs = from == "2" && !failed
			failed = failed || hangs
			return hangs
		}
		ctx, cancel := context.WithCancel(t.Context())
		defer cancel()
		passes := 0
		err := sweep.Run(ctx, st, &sweep.Options{Rest: -1, AfterPass: func(sweep.Stats, error) {
			if passes++; passes == 3 {
				cancel()
			}
		}})
		if want := []store.Cursor{"", "1", "2", "2", "3", "", "1", "2", "3"}; err != nil || !slices.Equal(st.steps, want) {
			t.Errorf("the steps were %q, error %v; want %q", st.steps, err, want)
		}
	})
}

// A step that fails again does not stop the sweep of the records before it.
func TestRun_StepFailsTwice_NextPassBeginsAtStart(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		st := &hangingStore{Store: memstore.New(nil), next: map[store.Cursor]store.Cursor{"": "1", "1": ""}, stepHangs: func(from store.Cursor) bool { return from == "1" }}
		ctx, cancel := context.WithCancel(t.Context())
		defer cancel()
		passes := 0
		err := sweep.Run(ctx, st, &sweep.Options{AfterPass: func(sweep.Stats, error) {
			if passes++; passes == 4 {
				cancel()
			}
		}})
		if want := []store.Cursor{"", "1", "1", "", "1", "1"}; err != nil || !slices.Equal(st.steps, want) {
			t.Errorf("the steps were %q, error %v; want %q", st.steps, err, want)
		}
	})
}

func TestOnce_AfterStep_GetsWhatWasDoneSoFar(t *testing.T) {
	st, advance := newClockedStore()
	for _, key := range []string{"a", "b", "c"} {
		crash(t, st, key, store.Proposal{Lease: time.Millisecond})
	}
	advance(time.Hour)
	var got []int
	o := &sweep.Options{Batch: 1, Rest: -1, AfterStep: func(s sweep.Stats) { got = append(got, s.Released) }}
	if _, err := sweep.Once(t.Context(), st, o); err != nil {
		t.Fatal(err)
	}
	if len(got) < 3 || !slices.IsSorted(got) || got[0] != 1 || got[len(got)-1] != 3 {
		t.Errorf("released after each step: %v", got)
	}
}
