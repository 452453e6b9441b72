package semel_test

import (
	"context"
	"errors"
	"slices"
	"testing"
	"testing/synctest"
	"time"

	"github.com/semel-go/semel"
	"github.com/semel-go/semel/driver"
	"github.com/semel-go/semel/store"
	"github.com/semel-go/semel/store/memstore"
	"github.com/semel-go/semel/sweep"
)

func TestObserve_EachCall_OneEndingEvent(t *testing.T) {
	var seen events
	g := guard(t, memstore.New(nil), &semel.Options{Observe: seen.observe})
	_, _ = g.Run(t.Context(), ann("k"), answer("x"))
	_, _ = g.Run(t.Context(), ann("k"), never(t))
	_, _ = g.Run(t.Context(), paying("k", semel.JSON(1)), never(t))
	_, _ = g.Run(t.Context(), ann("f"), fail(semel.Final(errBoom)))
	_, _ = g.Run(t.Context(), ann("f"), never(t))
	_, _ = g.Run(t.Context(), ann("r"), fail(errBoom))
	var kinds []string
	for _, e := range seen.all {
		kinds = append(kinds, e.Kind)
		if e.Operation != pay || e.Tenant != "ann" || len(e.Key) != 8 {
			t.Errorf("the event %+v lacks the operation, the tenant or the short key", e)
		}
	}
	want := []string{semel.EventExecuted, semel.EventReplayed, semel.EventRefused, semel.EventFailed, semel.EventReplayed, semel.EventReleased}
	if len(kinds) != len(want) {
		t.Fatalf("events %v, want %v", kinds, want)
	}
	for i := range want {
		if kinds[i] != want[i] {
			t.Errorf("event %d is %v, want %v", i, kinds[i], want[i])
		}
	}
}

// The end of a reconciler's run is not the end of the call that asked it. If a timer
// asks, there is no call that could end.
func TestObserve_ReconcilersRun_EndsNoCall(t *testing.T) {
	yes, fails := reconcilerOf(semel.Happened("yes"), nil), reconcilerOf(semel.Verdict{}, errBoom)
	for name, c := range map[string]struct {
		reconcile func(context.Context, *semel.Execution) (semel.Verdict, error)
		settle    error // the store's answer to its settlement
		late      bool  // the answer to its claim comes after the lease has expired
	}{
		"its lease is lost":         {reconcile: yes, settle: store.ErrLeaseLost},
		"its verdict is not stored": {reconcile: yes, settle: errBoom},
		"its failure is not stored": {reconcile: fails, settle: errBoom},
		"its claim came too late":   {reconcile: yes, late: true},
		"it does not know":          {reconcile: fails},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				var seen events
				st := &hooks{Store: memstore.New(nil)}
				g := guard(t, st, &semel.Options{OnDoubt: semel.Park, Reconcile: c.reconcile, Observe: seen.observe, Lease: time.Second, SettleTimeout: time.Second})
				_, err := g.Run(t.Context(), ann("k"), fail(errBoom))
				wantErr(t, err, semel.ErrParked)
				st.swap = func(ctx context.Context, was store.Seen, p store.Proposal) (store.Found, error) {
					f, err := st.Store.Swap(ctx, was, p)
					if c.late {
						time.Sleep(time.Second)
					}
					return f, err
				}
				if c.settle != nil {
					st.settle = func(context.Context, store.Lease, store.Settlement) error { return c.settle }
				}
				for _, timer := range []bool{false, true} {
					seen.all = nil
					want := 1
					if timer {
						want = 0
						if _, err := g.Reconcile(t.Context(), pay, 1); errors.Is(err, semel.ErrOutcomeNotStored) || errors.Is(err, semel.ErrLeaseLost) {
							t.Errorf("a timer got %v, which is the error of a call", err)
						}
					} else {
						_, _ = g.Run(t.Context(), ann("k"), never(t))
					}
					synctest.Wait()
					ends := slices.DeleteFunc(seen.all, func(e semel.Event) bool { return !e.EndsCall })
					if len(ends) != want {
						t.Errorf("asked by a timer %v: the ending events are %v, want %d", timer, ends, want)
					}
					time.Sleep(time.Minute) // the leases of unsettled claims have expired
					if _, err := sweep.Once(t.Context(), st.Store, nil); err != nil {
						t.Fatal(err)
					}
				}
			})
		})
	}
}

type traceKey struct{}

// Each event of a call has the values of the caller's context, so that traces
// connect.
func TestObserve_EventOfCall_HasCallersContext(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		st := memstore.New(nil)
		var seen events
		observe := func(ctx context.Context, e semel.Event) {
			if seen.observe(ctx, e); ctx.Value(traceKey{}) != "trace" {
				t.Errorf("the context of event %v has no values of the caller's", e.Kind)
			}
		}
		ctx := context.WithValue(t.Context(), traceKey{}, "trace")
		retry := guard(t, st, &semel.Options{MaxAttempts: 2, Observe: observe})
		park := guard(t, st, &semel.Options{OnDoubt: semel.Park, MaxAttempts: 1, Observe: observe, Reconcile: reconcilerOf(semel.DidNotHappen(), nil)})
		for _, g := range []*semel.Guard{retry, park} {
			key := g.OnDoubt().String()
			crash(t, st, g.OnDoubt(), key, time.Second)
			time.Sleep(time.Second)
			for range 3 {
				_, _ = g.Run(ctx, ann(key), fail(errBoom))
			}
		}
		left, leave := context.WithCancel(ctx)
		lossy := &hooks{Store: st}
		lossy.claim = func(ctx context.Context, p store.Proposal) (store.Found, error) {
			defer leave()
			return st.Claim(ctx, p)
		}
		_, _ = guard(t, lossy, &semel.Options{Observe: observe}).Run(left, ann("left"), never(t))
		synctest.Wait()
		for _, k := range []string{semel.EventTakenOver, semel.EventFailed, semel.EventParked, semel.EventReconciled, semel.EventReleased} {
			if seen.count(k) == 0 {
				t.Errorf("no event %v among %v", k, seen.all)
			}
		}
	})
}

func TestObserve_ExhaustedOrPanicked_OneEndingEvent(t *testing.T) {
	ending := func(e *events) (n int) {
		for _, event := range e.all {
			if event.EndsCall {
				n++
			}
		}
		return n
	}
	check := func(name string, e *events) {
		t.Helper()
		if n := ending(e); n != 1 {
			t.Errorf("%s: %d ending events, want 1, in %v", name, n, e.all)
		}
	}
	var e events
	g := guard(t, memstore.New(nil), &semel.Options{MaxAttempts: 1, Observe: e.observe})
	_, _ = g.Run(t.Context(), ann("k"), fail(errBoom))
	check("exhausted", &e)

	var e3 events
	g = guard(t, memstore.New(nil), &semel.Options{Observe: e3.observe})
	func() {
		defer func() { _ = recover() }()
		_, _ = g.Run(t.Context(), ann("k"), func(ctx context.Context, x *semel.Execution) (store.Outcome, error) {
			_ = driver.Complete(ctx, x, store.Outcome{})
			panic("later")
		})
	}()
	check("panic after Complete", &e3)
}
