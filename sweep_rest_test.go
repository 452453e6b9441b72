package semel_test

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

// slowSweeps has so many steps in a pass, each of which takes so long.
type slowSweeps struct {
	store.Store
	steps  int
	takes  time.Duration
	begun  []time.Time
	limits []int
}

func (s *slowSweeps) Sweep(_ context.Context, _ store.Cursor, limit int) (store.SweepResult, error) {
	s.begun, s.limits = append(s.begun, time.Now()), append(s.limits, limit)
	time.Sleep(s.takes)
	res := store.SweepResult{Now: time.Now(), Deleted: limit}
	if len(s.begun) < s.steps {
		res.Next = "more"
	}
	return res, nil
}

// A pass works for no more than a quarter of the time, and a rest ends.
func TestASweepRestsAfterEachStep(t *testing.T) {
	for _, c := range []struct {
		name        string
		rest, steps int
		takes, want time.Duration
	}{
		{"by default", 0, 4, 10 * time.Millisecond, (4 + 3*3) * 10 * time.Millisecond}, // none behind the last
		{"as told", 1, 4, 10 * time.Millisecond, (4 + 3) * 10 * time.Millisecond},
		{"as long as told", 100, 3, 2 * time.Millisecond, (3 + 2*100) * 2 * time.Millisecond},
		{"not at all", -1, 4, 10 * time.Millisecond, 40 * time.Millisecond},
		{"for a second at most", 0, 3, 10 * time.Second, 32 * time.Second},
		{"as long as can be told", math.MaxInt, 3, 10 * time.Millisecond, 3*10*time.Millisecond + 2*time.Second},
		{"in one for short steps", 0, 9, 100 * time.Microsecond, 9*100*time.Microsecond + 2*4*300*time.Microsecond},
	} {
		t.Run(c.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				st := &slowSweeps{Store: memstore.New(nil), steps: c.steps, takes: c.takes}
				start := time.Now()
				stats, err := sweep.Once(t.Context(), st, &sweep.Options{Rest: c.rest})
				if took := time.Since(start); err != nil || took != c.want || len(st.begun) != c.steps {
					t.Errorf("%d steps in %v, error %v; want %d in %v", len(st.begun), took, err, c.steps, c.want)
				}
				if want := 100 * c.steps; stats.Deleted != want || st.limits[0] != 100 {
					t.Errorf("%d deleted in steps of %d; want %d in steps of 100", stats.Deleted, st.limits[0], want)
				}
			})
		})
	}
}

func TestASweepThatRestsIsStopped(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		ctx, cancel := context.WithTimeout(t.Context(), 150*time.Millisecond)
		defer cancel()
		st := &slowSweeps{Store: memstore.New(nil), steps: 9, takes: 100 * time.Millisecond}
		start := time.Now()
		stats, err := sweep.Once(ctx, st, nil)
		if took := time.Since(start); took != 150*time.Millisecond || stats.Deleted != 100 {
			t.Errorf("%d deleted in %v; want 100 in 150ms", stats.Deleted, took)
		}
		if !errors.Is(err, semel.ErrCanceled) || !errors.Is(err, context.DeadlineExceeded) {
			t.Errorf("error %v", err)
		}
	})
}

// The longest pause between two passes is a pause, too.
func TestASweeperWhosePauseIsTheLongestMakesOnePass(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		passes := 0
		for range 20 { // a pause is of random length
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
			t.Errorf("20 sweepers made %d passes", passes)
		}
	})
}
