package semel_test

import (
	"context"
	"errors"
	"slices"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/semel-go/semel"
	"github.com/semel-go/semel/driver"
	"github.com/semel-go/semel/store"
	"github.com/semel-go/semel/store/memstore"
)

// Rule 7: one timer renews the leases of all running handlers.
func TestLease_LongHandler_IsRenewed(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		g := guard(t, memstore.New(nil), nil)
		res, err := g.Run(t.Context(), ann("k"), func(ctx context.Context, _ *semel.Execution) (store.Outcome, error) {
			time.Sleep(10 * time.Minute) // of virtual time
			_, err := g.Run(ctx, ann("k"), never(t))
			wantErr(t, err, semel.ErrInProgress)
			if e, _ := errors.AsType[*semel.Error](err); e.RetryAfter <= 0 || e.RetryAfter > 30*time.Second {
				t.Errorf("RetryAfter is %v; want the rest of the lease", e.RetryAfter)
			}
			return store.Outcome{Body: []byte("slow")}, ctx.Err()
		})
		wantBody(t, res, err, "slow", false)
	})
}

// The store fails at first and hangs shortly before the deadline. The handler must
// be cancelled before the hanging renewal is given up.
func TestLease_RenewalHangs_HandlerIsCancelledInTime(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		start := time.Now()
		g := guard(t, &hooks{Store: memstore.New(nil), renew: func(ctx context.Context, _ []store.Lease, _ time.Duration) ([]error, error) {
			if time.Since(start) > 23*time.Second { // two checks before the deadline
				<-ctx.Done()
				return nil, ctx.Err()
			}
			return nil, errBoom
		}}, nil)
		_, err := g.Run(t.Context(), ann("k"), func(ctx context.Context, _ *semel.Execution) (store.Outcome, error) {
			<-ctx.Done()
			if took := time.Since(start); took < 24*time.Second || took > 30*time.Second*7/8 {
				t.Errorf("cancelled after %v of a 30 s lease; at least an eighth of it must be left", took)
			}
			return store.Outcome{}, context.Cause(ctx)
		})
		wantErr(t, err, semel.ErrLeaseLost)
	})
}

// Rule 6: the owner cancels its handler by its own clock before another process may
// take over. It needs no answer of the store.
func TestLease_StoreFailsOrHangs_HandlerIsCancelledBeforeExpiry(t *testing.T) {
	for name, renew := range map[string]func(ctx context.Context, held []store.Lease, d time.Duration) ([]error, error){
		"the store fails": func(context.Context, []store.Lease, time.Duration) ([]error, error) { return nil, errBoom },
		"the store hangs": func(ctx context.Context, _ []store.Lease, _ time.Duration) ([]error, error) {
			<-ctx.Done()
			return nil, ctx.Err()
		},
		"the store ignores its context": func(context.Context, []store.Lease, time.Duration) ([]error, error) {
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
						t.Errorf("cancelled after %v of a 30 s lease; at least an eighth of it must be left", took)
					}
					if r := record(t, g, "k"); r.Lapsed(time.Now()) {
						t.Error("the lease expired before the handler was cancelled")
					}
					return store.Outcome{}, context.Cause(ctx)
				})
				wantErr(t, err, semel.ErrLeaseLost)
				time.Sleep(2 * time.Hour) // until the store has answered
			})
		})
	}
}

func TestLease_StoreReportsLost_HandlerIsCancelled(t *testing.T) {
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
				t.Errorf("cancelled after %v; the first renewal is due after 10 s", took)
			}
			return store.Outcome{}, context.Cause(ctx)
		})
		wantErr(t, err, semel.ErrLeaseLost)
	})
}

// Rule 6: a deadline counts from the time before the claim or the renewal was sent,
// even if the answer is late.
func TestLease_AnswerIsLate_DeadlineCountsFromSending(t *testing.T) {
	for name, slow := range map[string]func(h *hooks){
		"of the claim": func(h *hooks) {
			h.claim = func(ctx context.Context, p store.Proposal) (store.Found, error) {
				f, err := h.Store.Claim(ctx, p)
				time.Sleep(10 * time.Second)
				return f, err
			}
			h.renew = func(context.Context, []store.Lease, time.Duration) ([]error, error) { return nil, errBoom }
		},
		"of the renewal": func(h *hooks) {
			var n atomic.Int32 // the renewal is given up before it returns, and sent again
			h.renew = func(ctx context.Context, held []store.Lease, d time.Duration) ([]error, error) {
				if n.Add(1) > 1 {
					return nil, errBoom
				}
				errs, err := h.Store.Renew(ctx, held, d)
				time.Sleep(9 * time.Second)
				return errs, err
			}
		},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				h := &hooks{Store: memstore.New(nil)}
				slow(h)
				g := guard(t, h, nil)
				_, err := g.Run(t.Context(), ann("k"), func(ctx context.Context, _ *semel.Execution) (store.Outcome, error) {
					<-ctx.Done()
					if r := record(t, g, "k"); r.Lapsed(time.Now()) {
						t.Errorf("cancelled %v after the lease expired", time.Since(r.Until))
					}
					return store.Outcome{}, context.Cause(ctx)
				})
				wantErr(t, err, semel.ErrLeaseLost)
			})
		})
	}
}

// Rule 6. The handler does not wait for its context, so that a Guard which never
// cancels fails this test instead of hanging it.
func TestLease_NotRenewed_HandlerIsCancelledBeforeExpiry(t *testing.T) {
	for name, renew := range map[string]func(held []store.Lease) ([]error, error){
		"all fail":   func([]store.Lease) ([]error, error) { return nil, errBoom },
		"each fails": func(held []store.Lease) ([]error, error) { return slices.Repeat([]error{errBoom}, len(held)), nil },
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				h := &hooks{Store: memstore.New(nil)}
				h.renew = func(_ context.Context, held []store.Lease, _ time.Duration) ([]error, error) { return renew(held) }
				_, _ = guard(t, h, nil).Run(t.Context(), ann("k"), func(ctx context.Context, _ *semel.Execution) (store.Outcome, error) {
					time.Sleep(30*time.Second - time.Microsecond)
					if ctx.Err() == nil || !errors.Is(context.Cause(ctx), semel.ErrLeaseLost) {
						t.Errorf("1 µs before the lease expires, the handler's context has error %v and cause %v; want ErrLeaseLost", ctx.Err(), context.Cause(ctx))
					}
					return store.Outcome{}, errBoom
				})
			})
		})
	}
}

// A process that is stopped at a known time leaves no lease behind. The handler here
// ignores its context, as a process does that hangs.
func TestLease_ContextHasLeaseEnd_KeyIsFreeThen(t *testing.T) {
	for _, remaining := range []time.Duration{2 * time.Second, 50 * time.Second, 10 * time.Minute} {
		synctest.Test(t, func(t *testing.T) {
			st := memstore.New(nil)
			first, second := guard(t, st, nil), guard(t, st, nil)
			end := time.Now().Add(remaining)
			ctx, cancel := driver.LeaseUntil(t.Context(), end)
			defer cancel()
			ctx = context.WithoutCancel(ctx) // as a handler that goes on without its client
			ended := make(chan error)
			go func() {
				_, err := first.Run(ctx, ann("k"), func(ctx context.Context, _ *semel.Execution) (store.Outcome, error) {
					time.Sleep(remaining + time.Second)
					if ctx.Err() == nil {
						t.Error("the handler's context goes on after its lease")
					}
					return store.Outcome{Body: []byte("late")}, nil
				})
				ended <- err
			}()
			time.Sleep(remaining - 50*time.Millisecond)
			_, err := second.Run(t.Context(), ann("k"), never(t))
			wantErr(t, err, semel.ErrInProgress)
			time.Sleep(100 * time.Millisecond)
			res, err := second.Run(t.Context(), ann("k"), func(context.Context, *semel.Execution) (store.Outcome, error) {
				return store.Outcome{Body: []byte("second")}, nil
			})
			wantBody(t, res, err, "second", false)
			wantErr(t, <-ended, semel.ErrLeaseLost)
		})
	}
}

// A claim that takes over, and a reconciler's claim, have the same end.
func TestLease_ContextHasLeaseEnd_LaterClaimsKeepIt(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var leases []time.Duration
		mem := memstore.New(nil)
		st := &hooks{Store: mem, swap: func(ctx context.Context, seen store.Seen, p store.Proposal) (store.Found, error) {
			leases = append(leases, p.Lease)
			return mem.Swap(ctx, seen, p)
		}}
		g := guard(t, st, nil)
		fail := func(context.Context, *semel.Execution) (store.Outcome, error) { return store.Outcome{}, errBoom }
		_, err := g.Run(t.Context(), ann("k"), fail)
		wantErr(t, err, errBoom)
		ctx, cancel := driver.LeaseUntil(t.Context(), time.Now().Add(3*time.Second))
		defer cancel()
		_, err = g.Run(ctx, ann("k"), fail)
		wantErr(t, err, errBoom)
		if len(leases) != 1 || leases[0] != 3*time.Second {
			t.Errorf("the second attempt claimed for %v; want 3 s", leases)
		}
	})
}
