package semel_test

import (
	"context"
	"errors"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/semel-go/semel"
	"github.com/semel-go/semel/store"
	"github.com/semel-go/semel/store/memstore"
)

func waiting(key string, d time.Duration) semel.Call {
	c := ann(key)
	c.Wait = d
	return c
}

// crowd runs n calls at once and counts what they got.
func crowd(ctx context.Context, g *semel.Guard, n int, call semel.Call, fn semel.Handler) (ran, replayed int, errs []error) {
	var mu sync.Mutex
	var wg sync.WaitGroup
	for range n {
		wg.Go(func() {
			res, err := g.Run(ctx, call, fn)
			mu.Lock()
			defer mu.Unlock()
			switch {
			case err != nil:
				errs = append(errs, err)
			case string(res.Body) != "one":
				errs = append(errs, errors.New("a different answer"))
			case res.Replayed:
				replayed++
			default:
				ran++
			}
		})
	}
	wg.Wait()
	return ran, replayed, errs
}

func slowly(ctx context.Context, _ *semel.Execution) (store.Outcome, error) {
	select {
	case <-ctx.Done():
	case <-time.After(time.Second):
	}
	return store.Outcome{Body: []byte("one")}, nil
}

// Rule 14, with the figures that the project promises.
func TestAThousandWaitersGetOneAnswer(t *testing.T) {
	g := guard(t, memstore.New(nil), nil)
	ran, replayed, errs := crowd(t.Context(), g, 1000, waiting("k", time.Minute), slowly)
	if ran != 1 || replayed != 999 || len(errs) != 0 {
		t.Errorf("%d ran, %d replayed, errors %v", ran, replayed, errs)
	}
}

func TestAThousandWithoutWaitGetOneExecution(t *testing.T) {
	g := guard(t, memstore.New(nil), nil)
	ran, replayed, errs := crowd(t.Context(), g, 1000, ann("k"), slowly)
	if ran != 1 || replayed+len(errs) != 999 {
		t.Errorf("%d ran, %d replayed, %d errors", ran, replayed, len(errs))
	}
	for _, err := range errs {
		wantErr(t, err, semel.ErrInProgress)
	}
}

func TestWaitersOfAnotherProcessPoll(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		st := memstore.New(nil)
		g1, g2 := guard(t, st, nil), guard(t, st, nil)
		go func() { _, _ = g1.Run(t.Context(), ann("k"), slowly) }()
		synctest.Wait()
		start := time.Now()
		res, err := g2.Run(t.Context(), waiting("k", time.Minute), never(t))
		wantBody(t, res, err, "one", true)
		if took := time.Since(start); took > 2*time.Second {
			t.Errorf("noticed the end after %v", took)
		}
	})
}

// teller is a store that tells of changes as its function does.
type teller struct {
	hooks
	wait func(ctx context.Context) error
}

func (s *teller) Wait(ctx context.Context, _ store.Seen) error { return s.wait(ctx) }

// One Guard runs for a minute; another, over a store that tells, waits for it.
func TestAWaiterIsToldOrPolls(t *testing.T) {
	told := make(chan struct{})
	for _, c := range []struct {
		name     string
		wait     func(context.Context) error
		tell     bool          // when the run has ended
		late     time.Duration // at most
		min, max int           // reads
	}{
		{"told", func(ctx context.Context) error {
			select {
			case <-told:
				return nil
			case <-ctx.Done():
				return ctx.Err()
			}
		}, true, 20 * time.Millisecond, 0, 40},
		{"what it is told is lost", func(ctx context.Context) error { <-ctx.Done(); return ctx.Err() }, false, 8 * time.Second, 0, 40},
		{"the store cannot tell", func(context.Context) error { return errors.ErrUnsupported }, false, 2 * time.Second, 80, 400},
		{"the store cannot tell any longer", func(ctx context.Context) error {
			if pauseFor(ctx, time.Second) {
				return errBoom
			}
			return ctx.Err()
		}, false, 2 * time.Second, 80, 400},
	} {
		t.Run(c.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				told = make(chan struct{})
				st, gets := memstore.New(nil), 0
				w := &teller{hooks{Store: st, get: func(ctx context.Context, k store.Key) (store.Found, error) {
					gets++
					return st.Get(ctx, k)
				}}, c.wait}
				g1, g2 := guard(t, st, nil), guard(t, w, nil)
				var ended time.Time
				var run sync.WaitGroup
				run.Go(func() {
					_, _ = g1.Run(t.Context(), ann("k"), func(context.Context, *semel.Execution) (store.Outcome, error) {
						time.Sleep(time.Minute)
						return store.Outcome{Body: []byte("one")}, nil
					})
					ended = time.Now()
					if c.tell {
						close(told)
					}
				})
				synctest.Wait()
				res, err := g2.Run(t.Context(), waiting("k", 5*time.Minute), never(t))
				noticed := time.Now()
				wantBody(t, res, err, "one", true)
				run.Wait()
				if late := noticed.Sub(ended); late > c.late || gets < c.min || gets > c.max {
					t.Errorf("noticed the end %v late, with %d reads; want %v at most, and %d to %d", late, gets, c.late, c.min, c.max)
				}
			})
		})
	}
}

// Rule 14: within one Guard a waiter needs neither the store nor a poll to be
// told, also when it is one of several, and when others wait for another key.
func TestAWaiterOfTheSameGuardIsToldAtOnce(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		g := guard(t, memstore.New(nil), nil)
		var ended, told sync.Map // by key: when the run was over; by waiter: when it was told
		var all sync.WaitGroup
		for i, key := range []string{"a", "b"} {
			all.Go(func() {
				_, _ = g.Run(t.Context(), ann(key), func(context.Context, *semel.Execution) (store.Outcome, error) {
					time.Sleep(time.Duration(i+1) * time.Second)
					return store.Outcome{Body: []byte(key)}, nil
				})
				ended.Store(key, time.Now())
			})
		}
		synctest.Wait()
		for i := range 6 {
			key := []string{"a", "b"}[i%2]
			all.Go(func() {
				res, err := g.Run(t.Context(), waiting(key, time.Minute), never(t))
				now := time.Now()
				wantBody(t, res, err, key, true)
				told.Store(i, now) // which may be before the run's own caller is
			})
		}
		all.Wait()
		for i := range 6 {
			at, _ := told.Load(i)
			end, _ := ended.Load([]string{"a", "b"}[i%2])
			if late := at.(time.Time).Sub(end.(time.Time)); late != 0 {
				t.Errorf("waiter %v was told %v late", i, late)
			}
		}
	})
}

func pauseFor(ctx context.Context, d time.Duration) bool {
	select {
	case <-time.After(d):
		return true
	case <-ctx.Done():
		return false
	}
}

func TestAWaitEndsWithItsLimit(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		g := guard(t, memstore.New(nil), &semel.Options{Lease: 100 * time.Millisecond}) // many renewals meanwhile
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
			t.Errorf("waited %v of 1m0s", took)
		}
		ctx, leave := context.WithTimeout(t.Context(), 5*time.Second)
		defer leave()
		_, err = g.Run(ctx, waiting("k", time.Minute), never(t))
		wantErr(t, err, context.DeadlineExceeded)
		time.Sleep(2 * time.Minute)
	})
}

// Rule 13: a waiter gets the failure, not the right to run.
func TestAWaiterGetsTheFailureAndDoesNotRun(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		g := guard(t, memstore.New(nil), nil)
		go func() {
			_, _ = g.Run(t.Context(), ann("k"), func(context.Context, *semel.Execution) (store.Outcome, error) {
				time.Sleep(time.Second)
				return store.Outcome{}, errBoom
			})
		}()
		synctest.Wait()
		_, _, errs := crowd(t.Context(), g, 50, waiting("k", time.Minute), never(t))
		if len(errs) != 50 {
			t.Fatalf("%d of 50 were refused", len(errs))
		}
		for _, err := range errs {
			wantErr(t, err, semel.ErrReleased)
		}
	})
}

func TestAWaiterRunsWhenTheFirstHadNoEffect(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		g := guard(t, memstore.New(nil), nil)
		go func() {
			_, _ = g.Run(t.Context(), ann("k"), func(context.Context, *semel.Execution) (store.Outcome, error) {
				time.Sleep(time.Second)
				return store.Outcome{}, semel.NoEffect(errBoom)
			})
		}()
		synctest.Wait()
		ran, replayed, errs := crowd(t.Context(), g, 50, waiting("k", time.Minute), slowly)
		if ran != 1 || replayed != 49 {
			t.Errorf("%d ran, %d replayed, errors %v", ran, replayed, errs)
		}
	})
}

func TestAWaiterTakesOverFromACrashedHolder(t *testing.T) {
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

func TestWaitersAKeyAreBounded(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		g := guard(t, memstore.New(nil), &semel.Options{MaxWaiters: 3})
		go func() { _, _ = g.Run(t.Context(), ann("k"), slowly) }()
		synctest.Wait()
		_, replayed, errs := crowd(t.Context(), g, 5, waiting("k", time.Minute), never(t))
		if replayed != 3 || len(errs) != 2 {
			t.Errorf("%d replayed, errors %v", replayed, errs)
		}
	})
}

// Rule 14: a waiter wakes only after the settlement was acknowledged.
func TestWakingUpIsOnlyAHint(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		st := memstore.New(nil)
		h := &hooks{Store: st, settle: func(context.Context, store.Lease, store.Settlement) error { return errBoom }}
		g := guard(t, h, nil)
		go func() { _, _ = g.Run(t.Context(), ann("k"), slowly) }() // ends without a stored outcome
		synctest.Wait()
		_, err := g.Run(t.Context(), waiting("k", 15*time.Second), never(t))
		wantErr(t, err, semel.ErrInProgress)
	})
}

// Rule 13: until the backoff is over duplicates see "in progress".
func TestAFailedAttemptWaitsForItsBackoff(t *testing.T) {
	st, advance := clocked()
	g := guard(t, st, &semel.Options{Backoff: func(n int) time.Duration { return time.Duration(n) * time.Minute }})
	for n := 1; n <= 2; n++ {
		_, err := g.Run(t.Context(), ann("k"), fail(errBoom))
		wantErr(t, err, errBoom)
		_, err = g.Run(t.Context(), ann("k"), never(t))
		wantErr(t, err, semel.ErrInProgress)
		if e, _ := errors.AsType[*semel.Error](err); e.RetryAfter != time.Duration(n)*time.Minute {
			t.Errorf("RetryAfter is %v after attempt %d", e.RetryAfter, n)
		}
		advance(time.Duration(n) * time.Minute)
	}
	res, err := g.Run(t.Context(), ann("k"), answer("third"))
	wantBody(t, res, err, "third", false)
}

// Rule 13: after the limit a key ends failed for retry, unknown for park.
func TestAttemptsAreLimitedAndCrashesCount(t *testing.T) {
	st, advance := clocked()
	g := guard(t, st, &semel.Options{MaxAttempts: 2})
	_, err := g.Run(t.Context(), ann("errors"), fail(errBoom))
	wantErr(t, err, errBoom)
	_, err = g.Run(t.Context(), ann("errors"), fail(errBoom))
	exhausted := &semel.Failure{Code: semel.CodeAttemptsExhausted}
	wantErr(t, err, exhausted)
	_, err = g.Run(t.Context(), ann("errors"), never(t))
	wantErr(t, err, exhausted)
	wantState(t, g, "errors", store.Failed)

	crash(t, st, semel.Retry, "crashes", time.Second)
	advance(time.Second)
	_, err = g.Run(t.Context(), ann("crashes"), fail(semel.NoEffect(errBoom))) // does not count
	wantErr(t, err, errBoom)
	one := guard(t, st, &semel.Options{MaxAttempts: 1})
	_, err = one.Run(t.Context(), ann("crashes"), never(t))
	wantErr(t, err, exhausted)

	park := guard(t, st, &semel.Options{OnDoubt: semel.Park, MaxAttempts: 1})
	_, err = g.Run(t.Context(), ann("parked"), fail(errBoom))
	wantErr(t, err, errBoom)
	_, err = park.Run(t.Context(), ann("parked"), never(t))
	wantErr(t, err, semel.ErrParked)
	wantState(t, g, "parked", store.Unknown)
}
