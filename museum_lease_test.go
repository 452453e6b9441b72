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
	"github.com/semel-go/semel/store"
	"github.com/semel-go/semel/store/memstore"
)

// Rule 6: a deadline counts from before the claim or the renewal was sent,
// however long the answer took.
func TestADeadlineCountsFromTheSending(t *testing.T) {
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
			var n atomic.Int32 // it is given up before it returns, and sent again
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
						t.Errorf("cancelled %v after the lease was over", time.Since(r.Until))
					}
					return store.Outcome{}, context.Cause(ctx)
				})
				wantErr(t, err, semel.ErrLeaseLost)
			})
		})
	}
}

// Rule 7: one renewal that hangs does not keep the next from being sent.
func TestARenewalThatHangsIsGivenUp(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		h := &hooks{Store: memstore.New(nil)}
		n := 0
		h.renew = func(ctx context.Context, held []store.Lease, d time.Duration) ([]error, error) {
			if n++; n == 1 {
				start := time.Now()
				<-ctx.Done()
				if took := time.Since(start); took > 30*time.Second/6 {
					t.Errorf("it was given up after %v of a 30 s lease, of which a sixth is enough", took)
				}
				return nil, ctx.Err()
			}
			return h.Store.Renew(ctx, held, d)
		}
		res, err := guard(t, h, nil).Run(t.Context(), ann("k"), func(ctx context.Context, _ *semel.Execution) (store.Outcome, error) {
			time.Sleep(10 * time.Minute)
			return store.Outcome{Body: []byte("slow")}, context.Cause(ctx)
		})
		wantBody(t, res, err, "slow", false)
	})
}

// Rule 16: a reservation has its own deadline, and is no attempt.
func TestAReservationOutlastsTheLeaseAndIsNoAttempt(t *testing.T) {
	st, advance := clocked()
	g := guard(t, st, &semel.Options{Reservation: time.Hour, MaxAttempts: 1})
	ticket := reserve(t, g, ann("k"))
	if r := wantState(t, g, "k", store.Started); r.Attempt != 0 {
		t.Errorf("attempt %d; no handler has started", r.Attempt)
	}
	advance(time.Hour - time.Second)
	_, err := g.Run(t.Context(), ann("k"), never(t))
	wantErr(t, err, semel.ErrInProgress)
	res, err := g.Run(t.Context(), redeem(t, g, ticket.Token), func(_ context.Context, x *semel.Execution) (store.Outcome, error) {
		if x.Attempt() != 1 {
			t.Errorf("the first attempt is %d", x.Attempt())
		}
		return store.Outcome{Body: []byte("report")}, nil
	})
	wantBody(t, res, err, "report", false)
}

// Rule 14: who waits leaves with its own context, whatever the lease it waits
// for.
func TestAWaitEndsWithItsCaller(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		st := memstore.New(nil)
		crash(t, st, semel.Retry, "k", time.Hour)
		ctx, leave := context.WithTimeout(t.Context(), 5*time.Second)
		defer leave()
		start := time.Now()
		_, err := guard(t, st, nil).Run(ctx, waiting("k", 10*time.Minute), never(t))
		wantErr(t, err, context.DeadlineExceeded)
		if took := time.Since(start); took != 5*time.Second {
			t.Errorf("left after %v, not with its context after 5s", took)
		}
	})
}

// Rule 6, for a handler that does not wait for its context: so that a Guard
// which never cancels fails this test instead of hanging it.
func TestAHandlerThatNobodyRenewsIsCancelledInTime(t *testing.T) {
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
						t.Errorf("a moment before the end of its lease the handler's context has error %v, cause %v", ctx.Err(), context.Cause(ctx))
					}
					return store.Outcome{}, errBoom
				})
			})
		})
	}
}
