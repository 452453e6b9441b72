package verify

import (
	"context"
	"strings"
	"testing"
	"time"

	"github.com/semel-go/semel/store"
	"github.com/semel-go/semel/store/storetest"
	"github.com/semel-go/semel/sweep"
)

// allWell fails unless each check is, and tried something.
func allWell(t *testing.T, r *Report, err error) {
	t.Helper()
	if err != nil || !r.OK {
		t.Errorf("OK %v, error %v", r.OK, err)
	}
	for _, c := range r.Checks {
		if c.Verdict != OK || c.Trials == 0 || len(c.Violations) > 0 {
			t.Errorf("%+v", c)
		}
	}
}

func TestVerify_SoundStore_PassesAndIsEmpty(t *testing.T) {
	bubble(t, func(t *testing.T) {
		s := new(clockwork).sound()
		r, err := Run(t.Context(), targetOf(s), small())
		allWell(t, r, err)
		if len(r.Checks) != len(checks)+1 || r.Trials < 500 || r.Latency == nil || r.Warnings != 0 || r.Resent != 0 {
			t.Errorf("%d checks, %d trials, latency %v, %d warnings, %d sent again", len(r.Checks), r.Trials, r.Latency, r.Warnings, r.Resent)
		}
		if ks := left(t, s); len(ks) > 0 {
			t.Errorf("it left %d records: %+v", len(ks), ks[0])
		}
	})
}

func TestVerify_RequestsAndRepliesLost_Passes(t *testing.T) {
	for seed := range uint64(20) {
		bubble(t, func(t *testing.T) {
			s := new(clockwork).sound()
			f := storetest.NewFault(s, storetest.Chance(seed, 0.1, storetest.Before, storetest.LostReply, storetest.Twice))
			o := small()
			o.Processes = 0 // a worker speaks of its first error
			r, err := Run(t.Context(), targetOf(f), o)
			if r.Resent == 0 {
				t.Error("nothing was sent again")
			}
			for _, c := range r.Checks {
				if c.Verdict == Broken {
					t.Errorf("seed %d, error %v: %+v", seed, err, c)
				}
			}
			if ks := left(t, s); len(ks) > 0 {
				t.Errorf("it left %d records: %+v", len(ks), ks[0])
			}
		})
	}
}

// Another process sweeps a store in use and recovers lapsed claims.
func TestVerify_SweepsOfOthers_BreakNothing(t *testing.T) {
	recovered := 0
	for every := time.Millisecond; every < 2*short; every *= 3 {
		bubble(t, func(t *testing.T) {
			ctx, stop := context.WithCancel(t.Context())
			s := new(clockwork).sound()
			swept := make(chan int)
			go func() {
				n := 0
				for pause(ctx, every) {
					st, err := sweep.Once(ctx, s, nil)
					if err != nil && ctx.Err() == nil {
						t.Error(err)
					}
					n += st.Released + st.Parked
				}
				swept <- n
			}()
			r, err := Run(t.Context(), targetOf(s), small())
			stop()
			allWell(t, r, err)
			recovered += <-swept
			if ks := left(t, s); len(ks) > 0 {
				t.Errorf("it left %d records: %+v", len(ks), ks[0])
			}
		})
	}
	if recovered == 0 {
		t.Error("the sweeps recovered nothing")
	}
}

func TestVerify_ClockIsOff_Warns(t *testing.T) {
	bubble(t, func(t *testing.T) {
		c := new(clockwork)
		c.offset.Store(int64(-time.Hour))
		r, err := Run(t.Context(), targetOf(c.sound()), small())
		allWell(t, r, err)
		if got, _ := r.Result("clock"); len(got.Warnings) != 1 || !strings.Contains(got.Warnings[0], "-1h0m0s") {
			t.Errorf("%+v", got)
		}
	})
}

func TestVerify_ClockGoesBack_Warns(t *testing.T) {
	bubble(t, func(t *testing.T) {
		one := new(clockwork).sound()
		other := &sick{Store: one.Store}
		ahead(20 * time.Millisecond)(other)
		r, err := Run(t.Context(), targetOf(one, other), small("clock"))
		allWell(t, r, err)
		if got, _ := r.Result("clock"); len(got.Warnings) != 1 || !strings.Contains(got.Warnings[0], "goes back by 20ms") {
			t.Errorf("%+v", got)
		}
	})
}

func TestVerify_StoreKeepsSmallOutcomesOnly_Warns(t *testing.T) {
	bubble(t, func(t *testing.T) {
		s := new(clockwork).sound()
		s.settle = func(ctx context.Context, l store.Lease, st store.Settlement) error {
			if len(st.Outcome.Body) > 50_000 {
				return store.ErrTooLarge
			}
			return s.Store.Settle(ctx, l, st)
		}
		r, err := Run(t.Context(), targetOf(s), small("data"))
		allWell(t, r, err)
		if got, _ := r.Result("data"); len(got.Warnings) == 0 || !strings.Contains(got.Warnings[0], "too large") {
			t.Errorf("%+v", got)
		}
	})
}

func TestVerify_VolatileStore_IsReported(t *testing.T) {
	bubble(t, func(t *testing.T) {
		target := targetOf(new(clockwork).sound())
		target.Volatile, target.Start = true, nil
		r, err := Run(t.Context(), target, small("settings", "process-race"))
		if c, _ := r.Result("settings"); err != nil || len(c.Warnings) != 1 || !strings.Contains(c.Warnings[0], "in memory") {
			t.Errorf("error %v, %+v", err, c)
		}
		if c, _ := r.Result("process-race"); c.Verdict != Skipped || r.Processes != 0 || !strings.Contains(c.Info[0], "one process") {
			t.Errorf("%+v", c)
		}
	})
}
