package semel_test

import (
	"context"
	"errors"
	"testing"
	"testing/synctest"
	"time"

	"github.com/semel-go/semel"
	"github.com/semel-go/semel/driver"
	"github.com/semel-go/semel/store"
	"github.com/semel-go/semel/store/memstore"
)

func TestComplete_InHandler_StoresAtOnce(t *testing.T) {
	g := guard(t, memstore.New(nil), nil)
	_, err := g.Run(t.Context(), ann("k"), func(ctx context.Context, x *semel.Execution) (store.Outcome, error) {
		if driver.Completed(x) {
			t.Error("Completed is true before Complete")
		}
		if err := driver.Complete(ctx, x, store.Outcome{Code: 200, Gone: true}); err != nil || !driver.Completed(x) {
			t.Error(err)
		}
		if err := driver.Complete(ctx, x, store.Outcome{}); err == nil {
			t.Error("the second Complete succeeded")
		}
		_, err := g.Run(ctx, ann("k"), never(t))
		wantErr(t, err, semel.ErrNotKept)
		return store.Outcome{Body: []byte("ignored")}, errBoom
	})
	wantErr(t, err, errBoom)
	wantState(t, g, "k", store.Completed)
}

// A NoEffect that a handler returns after its outcome is stored concerns no other call: the
// call around it must not count as without effect.
func TestComplete_ThenNoEffect_OuterCallIsInDoubt(t *testing.T) {
	g := guard(t, memstore.New(nil), &semel.Options{OnDoubt: semel.Park})
	_, _ = g.Run(t.Context(), ann("outer"), func(ctx context.Context, _ *semel.Execution) (store.Outcome, error) {
		_, err := g.Run(ctx, ann("inner"), func(ctx context.Context, x *semel.Execution) (store.Outcome, error) {
			if err := driver.Complete(ctx, x, store.Outcome{Body: []byte("b")}); err != nil {
				t.Error(err)
			}
			return store.Outcome{}, semel.NoEffect(errBoom)
		})
		wantErr(t, err, errBoom)
		return store.Outcome{}, err
	})
	wantState(t, g, "inner", store.Completed)
	wantState(t, g, "outer", store.Unknown)
}

func TestComplete_AfterTakeOver_IsLeaseLost(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		st := memstore.New(nil)
		frozen := &hooks{Store: st, renew: func(context.Context, []store.Lease, time.Duration) ([]error, error) { return nil, errBoom }}
		_, err := guard(t, frozen, nil).Run(t.Context(), ann("k"), func(ctx context.Context, x *semel.Execution) (store.Outcome, error) {
			time.Sleep(time.Minute)
			_, err := guard(t, st, nil).Run(t.Context(), ann("k"), answer("second"))
			if err != nil {
				t.Error(err)
			}
			err = driver.Complete(ctx, x, store.Outcome{})
			wantErr(t, err, semel.ErrLeaseLost)
			return store.Outcome{}, err
		})
		wantErr(t, err, semel.ErrLeaseLost)
	})
}

// A renewal is on its way when the handler completes, and finds the record completed. The
// handler is streaming its answer by then, which must not break off.
func TestComplete_RenewalFindsRecordCompleted_HandlerGoesOn(t *testing.T) {
	for name, settleErr := range map[string]error{"the store answers": nil, "the answer is lost": errBoom} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				st := memstore.New(nil)
				sent, arrives, answered := make(chan struct{}), make(chan struct{}), make(chan struct{})
				h := &hooks{Store: st}
				h.renew = func(ctx context.Context, held []store.Lease, d time.Duration) ([]error, error) {
					close(sent)
					<-arrives
					defer close(answered)
					return st.Renew(context.WithoutCancel(ctx), held, d)
				}
				h.settle = func(ctx context.Context, l store.Lease, s store.Settlement) error {
					err := st.Settle(ctx, l, s)
					if settleErr == nil {
						close(arrives)
						<-answered
						return err
					}
					return settleErr
				}
				g := guard(t, h, &semel.Options{SettleTimeout: time.Second})
				_, err := g.Run(t.Context(), ann("k"), func(ctx context.Context, x *semel.Execution) (store.Outcome, error) {
					<-sent
					err := driver.Complete(ctx, x, store.Outcome{Code: 200, Gone: true})
					if settleErr != nil {
						wantErr(t, err, semel.ErrOutcomeNotStored)
						close(arrives)
						h.settle = nil // the Guard tries once more when the handler returns
					} else if err != nil {
						t.Error(err)
					}
					<-answered
					synctest.Wait()
					if ctx.Err() != nil {
						t.Errorf("the context of the handler ended: %v", context.Cause(ctx))
					}
					return store.Outcome{Code: 200, Gone: true}, nil
				})
				if err != nil {
					t.Error(err)
				}
				wantState(t, g, "k", store.Completed)
			})
		})
	}
}

// Complete tells the handler that it has lost the lease. If the handler goes on, the next
// renewal ends its context before the deadline of its own clock.
func TestComplete_RenewalFindsTakeOver_HandlerIsCancelled(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		st, advance := newClockedStore()
		g := guard(t, st, nil)
		_, err := g.Run(t.Context(), ann("k"), func(ctx context.Context, x *semel.Execution) (store.Outcome, error) {
			advance(time.Minute)
			if _, err := guard(t, st, nil).Run(t.Context(), ann("k"), answer("second")); err != nil {
				t.Error(err)
			}
			wantErr(t, driver.Complete(ctx, x, store.Outcome{}), semel.ErrLeaseLost)
			time.Sleep(12 * time.Second) // a third of the lease, and two checks
			wantErr(t, context.Cause(ctx), semel.ErrLeaseLost)
			return store.Outcome{}, nil
		})
		wantErr(t, err, semel.ErrLeaseLost)
	})
}

func TestComplete_ThenPanic_KeepsOutcome(t *testing.T) {
	g := guard(t, memstore.New(nil), &semel.Options{OnDoubt: semel.Park})
	func() {
		defer func() { _ = recover() }()
		_, _ = g.Run(t.Context(), ann("k"), func(ctx context.Context, x *semel.Execution) (store.Outcome, error) {
			if err := driver.Complete(ctx, x, store.Outcome{Body: []byte("sent")}); err != nil {
				t.Error(err)
			}
			panic("later")
		})
	}()
	res, err := g.Run(t.Context(), ann("k"), never(t))
	wantBody(t, res, err, "sent", true)
}

// Rule 9: an outcome counts as stored when the store has confirmed it.
func TestComplete_StoreFails_IsNotCompleted(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		st := memstore.New(nil)
		h := &hooks{Store: st, settle: func(context.Context, store.Lease, store.Settlement) error { return errBoom }}
		g := guard(t, h, nil)
		res, err := g.Run(t.Context(), ann("k"), func(ctx context.Context, x *semel.Execution) (store.Outcome, error) {
			wantErr(t, driver.Complete(ctx, x, store.Outcome{Body: []byte("first")}), semel.ErrOutcomeNotStored)
			if driver.Completed(x) {
				t.Error("Completed is true, although the store failed")
			}
			h.settle = nil
			return store.Outcome{Body: []byte("second")}, nil
		})
		wantBody(t, res, err, "second", false)
		res, err = g.Run(t.Context(), ann("k"), never(t))
		wantBody(t, res, err, "second", true)
	})
}

func TestComplete_InRerun_IsUnsupported(t *testing.T) {
	g := guard(t, memstore.New(nil), &semel.Options{Rerun: true})
	h := func(ctx context.Context, x *semel.Execution) (store.Outcome, error) {
		o := store.Outcome{Body: []byte("fresh")}
		if err := driver.Complete(ctx, x, o); err != nil && !errors.Is(err, errors.ErrUnsupported) {
			return store.Outcome{}, err
		}
		return o, nil
	}
	for i := range 3 {
		if _, err := g.Run(t.Context(), ann("k"), h); err != nil {
			t.Errorf("call %d: %v", i, err)
		}
	}
}

func TestComplete_InReconciler_IsUnsupported(t *testing.T) {
	st := memstore.New(nil)
	var e events
	g := guard(t, st, &semel.Options{OnDoubt: semel.Park, Observe: e.observe, Reconcile: func(ctx context.Context, x *semel.Execution) (semel.Verdict, error) {
		if err := driver.Complete(ctx, x, store.Outcome{Body: []byte("by complete")}); !errors.Is(err, errors.ErrUnsupported) {
			t.Error("Complete in a reconciler: want errors.ErrUnsupported")
		}
		return semel.DidNotHappen(), nil
	}})
	_, _ = g.Run(t.Context(), ann("k"), fail(errBoom))
	_, _ = g.Reconcile(t.Context(), pay, 1)
	if n := e.count(semel.EventExecuted); n != 0 {
		t.Errorf("%d events EventExecuted of a reconciler's run, want 0", n)
	}
}
