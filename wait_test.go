package semel_test

import (
	"context"
	"testing"
	"testing/synctest"
	"time"

	"github.com/semel-go/semel"
	"github.com/semel-go/semel/store"
	"github.com/semel-go/semel/store/memstore"
)

// Rule 14: a waiting call ends with its own context, even if the lease lasts longer.
func TestWait_CallerLeaves_Ends(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		st := memstore.New(nil)
		crash(t, st, semel.Retry, "k", time.Hour)
		ctx, leave := context.WithTimeout(t.Context(), 5*time.Second)
		defer leave()
		start := time.Now()
		_, err := guard(t, st, nil).Run(ctx, waiting("k", 10*time.Minute), never(t))
		wantErr(t, err, context.DeadlineExceeded)
		if took := time.Since(start); took != 5*time.Second {
			t.Errorf("the call ended after %v, want 5s as its context", took)
		}
	})
}

// leftBeforeLook is a store whose caller leaves when it has found a record, before it looks
// once more.
type leftBeforeLook struct {
	store.Store
	leave func()
}

func (s leftBeforeLook) Claim(ctx context.Context, p store.Proposal) (store.Found, error) {
	defer s.leave()
	return s.Store.Claim(ctx, p)
}

// A call that has found a run in progress says so, whenever its caller leaves.
func TestWait_CallerLeavesBeforeSecondLook_IsInProgress(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		st := memstore.New(nil)
		crash(t, st, semel.Retry, "k", time.Hour)
		ctx, leave := context.WithCancel(t.Context())
		_, err := guard(t, leftBeforeLook{st, leave}, nil).Run(ctx, waiting("k", 10*time.Minute), never(t))
		wantErr(t, err, semel.ErrInProgress)
		wantErr(t, err, context.Canceled)
	})
}

// Rules 1 and 14: while the call waits, the key expires and is used again with another
// payload. So the call is judged again.
func TestWait_KeyBeganAgain_IsJudgedAgain(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		st := memstore.New(nil)
		g := guard(t, st, nil)
		mine, theirs := fingerprintOf(t, nil, semel.JSON(1)), fingerprintOf(t, nil, semel.JSON(2))
		claim := func(fp store.Fingerprint) store.Proposal {
			return store.Proposal{
				Key: store.Key{Operation: "pay", Tenant: "ann", Value: "k"}, State: store.Processing, Owner: store.Owner{1}, Attempt: 1,
				Lease: time.Hour, Fingerprint: fp,
			}
		}
		f, err := st.Claim(t.Context(), claim(mine))
		if err != nil {
			t.Fatal(err)
		}
		got := make(chan error)
		go func() {
			call := paying("k", semel.JSON(1))
			call.Wait = time.Minute
			_, err := g.Run(t.Context(), call, never(t))
			got <- err
		}()
		synctest.Wait()
		again := claim(theirs)
		again.Owner, again.Restart = store.Owner{2}, true
		if f, err = st.Swap(t.Context(), f.Record.Seen(), again); err != nil || !f.Won {
			t.Fatal(f, err)
		}
		if err := st.Settle(t.Context(), f.Record.Lease(), store.Settlement{State: store.Completed, Attempt: 1, Keep: time.Hour}); err != nil {
			t.Fatal(err)
		}
		wantErr(t, <-got, semel.ErrMismatch)
	})
}

// Rule 14, with a thousand callers.
func TestWait_ThousandCalls_OneRunsAllGetItsResult(t *testing.T) {
	g := guard(t, memstore.New(nil), nil)
	ran, replayed, errs := runMany(t.Context(), g, 1000, waiting("k", time.Minute), slowly)
	if ran != 1 || replayed != 999 || len(errs) != 0 {
		t.Errorf("%d ran, %d got a replay, errors %v", ran, replayed, errs)
	}
}

func TestRun_ThousandCallsWithoutWait_OneRuns(t *testing.T) {
	g := guard(t, memstore.New(nil), nil)
	ran, replayed, errs := runMany(t.Context(), g, 1000, ann("k"), slowly)
	if ran != 1 || replayed+len(errs) != 999 {
		t.Errorf("%d ran, %d replayed, %d errors", ran, replayed, len(errs))
	}
	for _, err := range errs {
		wantErr(t, err, semel.ErrInProgress)
	}
}

func TestWait_LimitReached_IsInProgress(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		g := guard(t, memstore.New(nil), &semel.Options{Lease: 100 * time.Millisecond}) // so that there are many renewals
		go func() {
			_, _ = g.Run(t.Context(), ann("k"), func(context.Context, *semel.Execution) (store.Outcome, error) {
				time.Sleep(2 * time.Minute)
				return store.Outcome{}, nil
			})
		}()
		synctest.Wait()
		start := time.Now()
		_, err := g.Run(t.Context(), waiting("k", time.Minute), never(t))
		wantErr(t, err, semel.ErrInProgress)
		if took := time.Since(start); took < time.Minute || took > 61*time.Second {
			t.Errorf("waited %v, want 1m0s", took)
		}
		ctx, leave := context.WithTimeout(t.Context(), 5*time.Second)
		defer leave()
		_, err = g.Run(ctx, waiting("k", time.Minute), never(t))
		wantErr(t, err, context.DeadlineExceeded)
		time.Sleep(2 * time.Minute)
	})
}

// Rule 13: a call that waited for a failed attempt gets an error and does not run.
func TestWait_AttemptFails_IsReleasedAndDoesNotRun(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		g := guard(t, memstore.New(nil), nil)
		go func() {
			_, _ = g.Run(t.Context(), ann("k"), func(context.Context, *semel.Execution) (store.Outcome, error) {
				time.Sleep(time.Second)
				return store.Outcome{}, errBoom
			})
		}()
		synctest.Wait()
		_, _, errs := runMany(t.Context(), g, 50, waiting("k", time.Minute), never(t))
		if len(errs) != 50 {
			t.Fatalf("%d of 50 calls got an error", len(errs))
		}
		for _, err := range errs {
			wantErr(t, err, semel.ErrReleased)
		}
	})
}

func TestWait_FirstHadNoEffect_OneRuns(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		g := guard(t, memstore.New(nil), nil)
		go func() {
			_, _ = g.Run(t.Context(), ann("k"), func(context.Context, *semel.Execution) (store.Outcome, error) {
				time.Sleep(time.Second)
				return store.Outcome{}, semel.NoEffect(errBoom)
			})
		}()
		synctest.Wait()
		ran, replayed, errs := runMany(t.Context(), g, 50, waiting("k", time.Minute), slowly)
		if ran != 1 || replayed != 49 {
			t.Errorf("%d ran, %d got a replay, errors %v", ran, replayed, errs)
		}
	})
}

func TestWait_HolderCrashed_TakesOver(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		st := memstore.New(nil)
		crash(t, st, semel.Retry, "k", 20*time.Second)
		start := time.Now()
		res, err := guard(t, st, nil).Run(t.Context(), waiting("k", time.Minute), answer("mine"))
		wantBody(t, res, err, "mine", false)
		if took := time.Since(start); took < 20*time.Second || took > 21*time.Second {
			t.Errorf("took over after %v of a 20 s lease", took)
		}
	})
}

func TestWait_OverMaxWaiters_IsInProgress(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		g := guard(t, memstore.New(nil), &semel.Options{MaxWaiters: 3})
		go func() { _, _ = g.Run(t.Context(), ann("k"), slowly) }()
		synctest.Wait()
		_, replayed, errs := runMany(t.Context(), g, 5, waiting("k", time.Minute), never(t))
		if replayed != 3 || len(errs) != 2 {
			t.Errorf("%d replayed, errors %v", replayed, errs)
		}
	})
}

// Rule 14: a waiting call looks at the record again, whatever woke it.
func TestWait_RunEndsWithoutOutcome_IsInProgress(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		st := memstore.New(nil)
		h := &hooks{Store: st, settle: func(context.Context, store.Lease, store.Settlement) error { return errBoom }}
		g := guard(t, h, nil)
		go func() { _, _ = g.Run(t.Context(), ann("k"), slowly) }() // its outcome is not stored
		synctest.Wait()
		_, err := g.Run(t.Context(), waiting("k", 15*time.Second), never(t))
		wantErr(t, err, semel.ErrInProgress)
	})
}
