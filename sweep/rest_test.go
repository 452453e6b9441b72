package sweep_test

import (
	"context"
	"errors"
	"math"
	"testing"
	"testing/synctest"
	"time"

	"github.com/semel-go/semel"
	"github.com/semel-go/semel/store"
	"github.com/semel-go/semel/store/memstore"
	"github.com/semel-go/semel/sweep"
)

// slowStore is a store whose sweep has a number of slow steps.
type slowStore struct {
	store.Store
	steps    int
	stepTime time.Duration
	begun    int // steps
	limits   []int
}

func (s *slowStore) Sweep(_ context.Context, _ store.Cursor, limit int) (store.SweepResult, error) {
	s.begun++
	s.limits = append(s.limits, limit)
	time.Sleep(s.stepTime)
	res := store.SweepResult{Now: time.Now(), Deleted: limit}
	if s.begun < s.steps {
		res.Next = "more"
	}
	return res, nil
}

// By default a pass works for at most a quarter of the time. No rest exceeds 1 s.
func TestOnce_ManySteps_RestsAfterEach(t *testing.T) {
	for _, c := range []struct {
		name        string
		rest, steps int
		takes, want time.Duration // each step, and the whole pass
	}{
		{"by default", 0, 4, 10 * time.Millisecond, (4 + 3*3) * 10 * time.Millisecond}, // no rest after the last step
		{"as long as the step", 1, 4, 10 * time.Millisecond, (4 + 3) * 10 * time.Millisecond},
		{"100 times as long", 100, 3, 2 * time.Millisecond, (3 + 2*100) * 2 * time.Millisecond},
		{"no rest", -1, 4, 10 * time.Millisecond, 40 * time.Millisecond},
		{"at most a second", 0, 3, 10 * time.Second, 32 * time.Second},
		{"the largest factor", math.MaxInt, 3, 10 * time.Millisecond, 3*10*time.Millisecond + 2*time.Second},
		{"one rest after several short steps", 0, 9, 100 * time.Microsecond, 9*100*time.Microsecond + 2*4*300*time.Microsecond},
	} {
		t.Run(c.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				st := &slowStore{Store: memstore.New(nil), steps: c.steps, stepTime: c.takes}
				start := time.Now()
				stats, err := sweep.Once(t.Context(), st, &sweep.Options{Rest: c.rest})
				if took := time.Since(start); err != nil || took != c.want || st.begun != c.steps {
					t.Errorf("%d steps in %v, error %v; want %d in %v", st.begun, took, err, c.steps, c.want)
				}
				if want := 100 * c.steps; stats.Deleted != want || st.limits[0] != 100 {
					t.Errorf("%d deleted in steps of %d; want %d in steps of 100", stats.Deleted, st.limits[0], want)
				}
			})
		})
	}
}

func TestOnce_ContextEndsDuringRest_Stops(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		ctx, cancel := context.WithTimeout(t.Context(), 150*time.Millisecond)
		defer cancel()
		st := &slowStore{Store: memstore.New(nil), steps: 9, stepTime: 100 * time.Millisecond}
		start := time.Now()
		stats, err := sweep.Once(ctx, st, nil)
		if took := time.Since(start); took != 150*time.Millisecond || stats.Deleted != 100 {
			t.Errorf("%d deleted in %v; want 100 in 150ms", stats.Deleted, took)
		}
		if !errors.Is(err, semel.ErrCanceled) || !errors.Is(err, context.DeadlineExceeded) {
			t.Errorf("got error %v, want ErrCanceled with the cause context.DeadlineExceeded", err)
		}
	})
}

// A pause that a time.Duration can hold must not overflow to no pause.
func TestRun_LongestPause_MakesOnePass(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		passes := 0
		for range 20 { // the pause is random
			ctx, stop := context.WithTimeout(t.Context(), time.Hour)
			o := &sweep.Options{Every: math.MaxInt64, AfterPass: func(sweep.Stats, error) {
				if passes++; passes > 100 {
					stop()
				}
			}}
			if err := sweep.Run(ctx, memstore.New(nil), o); err != nil {
				t.Error(err)
			}
			stop()
		}
		if passes != 20 {
			t.Errorf("20 sweeps made %d passes, want 20: one at the start of each", passes)
		}
	})
}
