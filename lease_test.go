package semel_test

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/semel-go/semel"
	"github.com/semel-go/semel/store"
	"github.com/semel-go/semel/store/memstore"
)

// Rule 7: one loop renews the leases of running handlers.
func TestALeaseIsRenewedWhileTheHandlerRuns(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		g := guard(t, memstore.New(nil), nil)
		res, err := g.Run(t.Context(), ann("k"), func(ctx context.Context, _ *semel.Execution) (store.Outcome, error) {
			time.Sleep(10 * time.Minute) // of virtual time
			_, err := g.Run(ctx, ann("k"), never(t))
			wantErr(t, err, semel.ErrInProgress)
			if e, _ := errors.AsType[*semel.Error](err); e.RetryAfter <= 0 || e.RetryAfter > 30*time.Second {
				t.Errorf("RetryAfter is %v; want what is left of the lease", e.RetryAfter)
			}
			return store.Outcome{Body: []byte("slow")}, ctx.Err()
		})
		wantBody(t, res, err, "slow", false)
	})
}

// A store that fails, and hangs when the lease is nearly over: the renewal that
// hangs is given up later than the handler has to be.
func TestAHandlerIsCancelledWhileARenewalHangs(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		start := time.Now()
		g := guard(t, &hooks{Store: memstore.New(nil), renew: func(ctx context.Context, _ []store.Lease, _ time.Duration) ([]error, error) {
			if time.Since(start) > 23*time.Second { // two turns before the deadline
				<-ctx.Done()
				return nil, ctx.Err()
			}
			return nil, errBoom
		}}, nil)
		_, err := g.Run(t.Context(), ann("k"), func(ctx context.Context, _ *semel.Execution) (store.Outcome, error) {
			<-ctx.Done()
			if took := time.Since(start); took < 24*time.Second || took > 30*time.Second*7/8 {
				t.Errorf("cancelled after %v of a 30 s lease; an eighth of it is to be left", took)
			}
			return store.Outcome{}, context.Cause(ctx)
		})
		wantErr(t, err, semel.ErrLeaseLost)
	})
}

// Rule 6: the owner cancels its handler by its own clock, with no answer
// needed, before another may take over.
func TestAHandlerIsCancelledBeforeItsLeaseEndsWhateverTheStoreDoes(t *testing.T) {
	for name, renew := range map[string]func(ctx context.Context, held []store.Lease, d time.Duration) ([]error, error){
		"the store fails": func(context.Context, []store.Lease, time.Duration) ([]error, error) { return nil, errBoom },
		"the store hangs": func(ctx context.Context, _ []store.Lease, _ time.Duration) ([]error, error) {
			<-ctx.Done()
			return nil, ctx.Err()
		},
		"the store ignores even its context": func(context.Context, []store.Lease, time.Duration) ([]error, error) {
			time.Sleep(time.Hour)
			return nil, errBoom
		},
		"one lease fails": func(_ context.Context, held []store.Lease, _ time.Duration) ([]error, error) {
			errs := make([]error, len(held))
			for i := range errs {
				errs[i] = errBoom
			}
			return errs, nil
		},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				st := memstore.New(nil)
				g := guard(t, &hooks{Store: st, renew: renew}, nil)
				start := time.Now()
				_, err := g.Run(t.Context(), ann("k"), func(ctx context.Context, _ *semel.Execution) (store.Outcome, error) {
					<-ctx.Done()
					wantErr(t, context.Cause(ctx), semel.ErrLeaseLost)
					if took := time.Since(start); took < 20*time.Second || took > 30*time.Second*7/8 {
						t.Errorf("cancelled after %v of a 30 s lease; an eighth of it is to be left", took)
					}
					if r := record(t, g, "k"); r.Lapsed(time.Now()) {
						t.Error("the lease was over before the handler was cancelled")
					}
					return store.Outcome{}, context.Cause(ctx)
				})
				wantErr(t, err, semel.ErrLeaseLost)
				time.Sleep(2 * time.Hour) // until the deaf store has answered
			})
		})
	}
}

// Rule 6: the deadline is counted from before the claim was sent.
func TestAClaimWhoseAnswerTookLongerThanItsLeaseIsGivenBack(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		st := memstore.New(nil)
		slow := &hooks{Store: st}
		slow.claim = func(ctx context.Context, p store.Proposal) (store.Found, error) {
			f, err := st.Claim(ctx, p)
			time.Sleep(28 * time.Second)
			return f, err
		}
		g := guard(t, slow, nil)
		_, err := g.Run(t.Context(), ann("k"), never(t))
		wantErr(t, err, semel.ErrUnavailable)
		synctest.Wait()
		if r := wantState(t, g, "k", store.Released); r.Attempt != 0 {
			t.Errorf("attempt %d; no handler has started", r.Attempt)
		}
	})
}

// Rule 4: a frozen owner that wakes up after a take-over changes nothing.
func TestAZombiesSettlementIsRefused(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		st := memstore.New(nil)
		frozen := &hooks{Store: st, renew: func(context.Context, []store.Lease, time.Duration) ([]error, error) { return nil, errBoom }}
		g1, g2 := guard(t, frozen, nil), guard(t, st, nil)
		var fence1, fence2 uint64
		_, err := g1.Run(t.Context(), ann("k"), func(ctx context.Context, x *semel.Execution) (store.Outcome, error) {
			fence1 = x.Fence()
			time.Sleep(31 * time.Second) // ignores its context
			res, err := g2.Run(t.Context(), ann("k"), func(_ context.Context, x *semel.Execution) (store.Outcome, error) {
				fence2 = x.Fence()
				if x.Attempt() != 2 {
					t.Errorf("attempt %d; the crash counts", x.Attempt())
				}
				return store.Outcome{Body: []byte("second")}, nil
			})
			wantBody(t, res, err, "second", false)
			return store.Outcome{Body: []byte("zombie")}, nil
		})
		wantErr(t, err, semel.ErrLeaseLost)
		if fence2 <= fence1 {
			t.Errorf("fence %d after %d; it must grow", fence2, fence1)
		}
		res, err := g1.Run(t.Context(), ann("k"), never(t))
		wantBody(t, res, err, "second", true)
	})
}

// Rule 4: while nobody has taken over, a late owner's true answer counts.
func TestALateOwnerThatNobodyReplacedMaySettle(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		st := &hooks{Store: memstore.New(nil), renew: func(context.Context, []store.Lease, time.Duration) ([]error, error) { return nil, errBoom }}
		g := guard(t, st, &semel.Options{OnDoubt: semel.Park})
		res, err := g.Run(t.Context(), ann("k"), func(context.Context, *semel.Execution) (store.Outcome, error) {
			time.Sleep(time.Minute)
			return store.Outcome{Body: []byte("late")}, nil
		})
		wantBody(t, res, err, "late", false)
		wantState(t, g, "k", store.Completed)
	})
}

func TestALapsedClaimIsTakenOverUnderRetryAndParkedUnderPark(t *testing.T) {
	st, advance := clocked()
	var seen events
	g := guard(t, st, &semel.Options{Observe: seen.observe})
	crash(t, st, semel.Retry, "k", 30*time.Second)
	_, err := g.Run(t.Context(), ann("k"), never(t))
	wantErr(t, err, semel.ErrInProgress)
	advance(30 * time.Second)
	res, err := g.Run(t.Context(), ann("k"), answer("again"))
	wantBody(t, res, err, "again", false)
	if seen.count(semel.EventTakenOver) != 1 {
		t.Error("no event of the take-over")
	}

	p := guard(t, st, &semel.Options{OnDoubt: semel.Park})
	crash(t, st, semel.Park, "p", 30*time.Second)
	advance(30 * time.Second)
	_, err = p.Run(t.Context(), ann("p"), never(t))
	wantErr(t, err, semel.ErrParked)
	wantState(t, p, "p", store.Unknown)
}

// §2: the policy is stored, and the stricter of record and call wins, so that
// a rolling deploy can't weaken a key.
func TestTheStricterPolicyOfRecordAndCallWins(t *testing.T) {
	st, advance := clocked()
	retry, park := guard(t, st, nil), guard(t, st, &semel.Options{OnDoubt: semel.Park})
	crash(t, st, semel.Park, "made strict", time.Second)
	crash(t, st, semel.Retry, "met by strict", time.Second)
	advance(time.Second)
	_, err := retry.Run(t.Context(), ann("made strict"), never(t))
	wantErr(t, err, semel.ErrParked)
	_, err = park.Run(t.Context(), ann("met by strict"), never(t))
	wantErr(t, err, semel.ErrParked)

	// A released record of a strict Guard stays strict in a lax one's hands.
	_, err = park.Run(t.Context(), ann("released"), fail(semel.NoEffect(errBoom)))
	wantErr(t, err, errBoom)
	_, err = retry.Run(t.Context(), ann("released"), fail(errBoom))
	wantErr(t, err, semel.ErrParked)
}

func TestALeaseThatTheStoreSaysIsLostEndsTheHandler(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		st := memstore.New(nil)
		h := &hooks{Store: st, renew: func(_ context.Context, held []store.Lease, _ time.Duration) ([]error, error) {
			return []error{store.ErrLeaseLost}, nil
		}}
		g := guard(t, h, nil)
		start := time.Now()
		_, err := g.Run(t.Context(), ann("k"), func(ctx context.Context, _ *semel.Execution) (store.Outcome, error) {
			<-ctx.Done()
			if took := time.Since(start); took > 12*time.Second {
				t.Errorf("told after %v; the first renewal is due after 10 s", took)
			}
			return store.Outcome{}, context.Cause(ctx)
		})
		wantErr(t, err, semel.ErrLeaseLost)
	})
}

// A thousand handlers need one renewal round trip each third of the lease.
func TestRenewalsGoTogether(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		st := memstore.New(nil)
		trips, leases := 0, 0
		h := &hooks{Store: st}
		h.renew = func(ctx context.Context, held []store.Lease, d time.Duration) ([]error, error) {
			trips++
			leases += len(held)
			return st.Renew(ctx, held, d)
		}
		g := guard(t, h, nil)
		for i := range 400 {
			go func() {
				_, err := g.Run(t.Context(), ann(fmt.Sprint(i)), func(ctx context.Context, _ *semel.Execution) (store.Outcome, error) {
					time.Sleep(25 * time.Second)
					return store.Outcome{}, ctx.Err()
				})
				if err != nil {
					t.Error(err)
				}
			}()
		}
		time.Sleep(30 * time.Second)
		synctest.Wait()
		if trips != 2 || leases != 800 {
			t.Errorf("%d round trips for %d renewals; want 2 for 800", trips, leases)
		}
	})
}

// A store that hangs at the renewal of one lease, and ignores even its context,
// costs no other lease: neither one that is renewed together with it, nor one
// that is due later.
func TestALeaseThatCannotBeRenewedCostsNoOther(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		h := &hooks{Store: memstore.New(nil)}
		var asked atomic.Int32
		h.renew = func(ctx context.Context, held []store.Lease, d time.Duration) ([]error, error) {
			for _, l := range held {
				if l.Key.Value == "bad" {
					asked.Add(1)
					time.Sleep(24 * time.Hour)
				}
			}
			return h.Store.Renew(ctx, held, d)
		}
		g := guard(t, h, nil)
		run := func(key string, lasts time.Duration, want error) {
			_, err := g.Run(t.Context(), ann(key), func(ctx context.Context, _ *semel.Execution) (store.Outcome, error) {
				select {
				case <-ctx.Done():
				case <-time.After(lasts):
				}
				return store.Outcome{}, context.Cause(ctx)
			})
			if !errors.Is(err, want) {
				t.Errorf("%s: %v, want %v", key, err, want)
			}
		}
		var all sync.WaitGroup
		all.Go(func() { run("bad", time.Hour, semel.ErrLeaseLost) })
		all.Go(func() { run("beside", 10*time.Minute, nil) })
		time.Sleep(12 * time.Second)
		all.Go(func() { run("later", 10*time.Minute, nil) })
		all.Wait()
		if n := asked.Load(); n > 2 {
			t.Errorf("%d renewals hang; one that is alone is not to be sent again", n)
		}
		time.Sleep(25 * time.Hour)
	})
}
