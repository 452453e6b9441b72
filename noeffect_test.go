package semel_test

import (
	"context"
	"errors"
	"fmt"
	"testing"
	"testing/synctest"
	"time"

	"github.com/semel-go/semel"
	"github.com/semel-go/semel/store"
	"github.com/semel-go/semel/store/memstore"
)

// with is a call with a payload.
func with(key, payload string) semel.Call { return paying(key, semel.Bytes([]byte(payload))) }

func TestNoEffect_NothingHappenedBefore_FreesKeyForOtherPayload(t *testing.T) {
	for _, policy := range []semel.Policy{semel.Retry, semel.Park} {
		g := guard(t, memstore.New(nil), &semel.Options{OnDoubt: policy, MaxAttempts: 1})
		for _, payload := range []string{"digest without a body", "another boundary", "another boundary"} {
			_, err := g.Run(t.Context(), with("k", payload), fail(semel.NoEffect(errBoom)))
			wantErr(t, err, errBoom)
		}
		res, err := g.Run(t.Context(), with("k", "the real body"), answer("done"))
		wantBody(t, res, err, "done", false)
		_, err = g.Run(t.Context(), with("k", "otp=good"), never(t))
		wantErr(t, err, semel.ErrMismatch)
	}
}

func TestNoEffect_AfterDoubt_KeyStaysBound(t *testing.T) {
	g := guard(t, memstore.New(nil), nil)
	_, err := g.Run(t.Context(), with("k", "first"), fail(errBoom)) // it may have had an effect
	wantErr(t, err, errBoom)
	_, err = g.Run(t.Context(), with("k", "first"), fail(semel.NoEffect(errBoom)))
	wantErr(t, err, errBoom)
	_, err = g.Run(t.Context(), with("k", "second"), never(t))
	wantErr(t, err, semel.ErrMismatch)
}

func TestNoEffect_HandlerAskedForStep_KeyStaysBound(t *testing.T) {
	g := guard(t, memstore.New(nil), nil)
	_, err := g.Run(t.Context(), with("k", "first"), func(ctx context.Context, x *semel.Execution) (store.Outcome, error) {
		if err := semel.Once(ctx, g, x.Step("charge"), func(context.Context, *semel.Execution) error { return nil }); err != nil {
			t.Error(err)
		}
		return store.Outcome{}, semel.NoEffect(errBoom)
	})
	wantErr(t, err, errBoom)
	_, err = g.Run(t.Context(), with("k", "second"), never(t))
	wantErr(t, err, semel.ErrMismatch)
}

// The work of a reservation was promised, so its payload stays.
func TestNoEffect_OfReservedCall_TokenHolds(t *testing.T) {
	g := guard(t, memstore.New(nil), nil)
	ticket := reserve(t, g, with("k", "first"))
	for range 2 {
		_, err := g.Run(t.Context(), redeem(t, g, ticket.Token), fail(semel.NoEffect(errBoom)))
		wantErr(t, err, errBoom)
	}
	_, err := g.Reserve(t.Context(), with("k", "second"))
	wantErr(t, err, semel.ErrMismatch)
	res, err := g.Run(t.Context(), redeem(t, g, ticket.Token), answer("done"))
	wantBody(t, res, err, "done", false)
}

// lateClaims makes a store whose first claims do not arrive. The caller leaves when a claim
// has been carried out.
type lateClaims struct {
	lost, sent int // how many claims do not arrive, and how many were sent
	leave      func()
	late       store.Proposal // the last claim that did not arrive
}

func (l *lateClaims) over(st store.Store) *hooks {
	h := &hooks{Store: st}
	h.claim = func(ctx context.Context, p store.Proposal) (store.Found, error) {
		if l.sent++; l.sent <= l.lost {
			l.late = p
			return store.Found{}, errBoom
		}
		f, err := st.Claim(ctx, p)
		l.leave()
		return f, err
	}
	return h
}

// No handler has started, so that nothing has happened under the key.
func TestClaim_GivenBack_FreesKeyForOtherPayload(t *testing.T) {
	for name, lost := range map[string]int{"the caller left": 0, "the store did not answer": 4} {
		for _, policy := range []semel.Policy{semel.Retry, semel.Park} {
			t.Run(fmt.Sprint(name, " under ", policy), func(t *testing.T) {
				synctest.Test(t, func(t *testing.T) {
					st := memstore.New(nil)
					ctx, leave := context.WithCancel(t.Context())
					l := &lateClaims{lost: lost, leave: leave}
					o := &semel.Options{OnDoubt: policy}
					if _, err := guard(t, l.over(st), o).Run(ctx, with("k", "boundary 1"), never(t)); err == nil {
						t.Fatal("the call succeeded")
					}
					time.Sleep(10 * time.Second) // the Guard sends the claim again, and gives it back
					synctest.Wait()
					if lost > 0 { // the first request arrives after all
						if f, err := st.Claim(t.Context(), l.late); err != nil || f.Won {
							t.Errorf("the late claim: won %v, %v", f.Won, err)
						}
					}
					g := guard(t, st, o)
					res, err := g.Run(t.Context(), with("k", "boundary 2"), answer("ran"))
					wantBody(t, res, err, "ran", false)
					_, err = g.Run(t.Context(), with("k", "boundary 1"), never(t))
					wantErr(t, err, semel.ErrMismatch)
				})
			})
		}
	}
}

func TestClaim_GivenBackAfterDoubt_KeyStaysBound(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		st := memstore.New(nil)
		g := guard(t, st, nil)
		_, err := g.Run(t.Context(), with("k", "first"), fail(errBoom)) // it may have had an effect
		wantErr(t, err, errBoom)
		ctx, leave := context.WithCancel(t.Context())
		h := &hooks{Store: st, swap: func(ctx context.Context, seen store.Seen, p store.Proposal) (store.Found, error) {
			f, err := st.Swap(ctx, seen, p)
			leave()
			return f, err
		}}
		_, err = guard(t, h, nil).Run(ctx, with("k", "first"), never(t))
		wantErr(t, err, semel.ErrCanceled)
		synctest.Wait()
		wantState(t, g, "k", store.Released)
		_, err = g.Run(t.Context(), with("k", "second"), never(t))
		wantErr(t, err, semel.ErrMismatch)
	})
}

func TestInProgress_Error_SaysHowLongRunGoesOn(t *testing.T) {
	st, advance := newClockedStore()
	g := guard(t, st, nil)
	crash(t, st, semel.Retry, "k", time.Minute)
	for _, want := range []time.Duration{3 * time.Second, 20 * time.Second} {
		advance(want)
		_, err := g.Run(t.Context(), ann("k"), never(t))
		wantErr(t, err, semel.ErrInProgress)
		if e, ok := errors.AsType[*semel.Error](err); !ok || e.Running != want {
			t.Errorf("after %v the error is %+v", want, e)
		}
		advance(-want)
	}
}
