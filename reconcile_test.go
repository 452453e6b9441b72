package semel_test

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/semel-go/semel"
	"github.com/semel-go/semel/store"
	"github.com/semel-go/semel/store/memstore"
)

// Rule 17: the next call with the key asks the reconciler and follows its verdict.
func TestReconcile_NextCall_FollowsVerdict(t *testing.T) {
	declined := &semel.Failure{Code: "declined"}
	for name, c := range map[string]struct {
		r     reconciler
		state store.State
		body  string // the result of the next call; "fresh" if its handler ran
		err   error
	}{
		"it happened":             {reconcilerOf(semel.Happened(store.Outcome{Body: []byte("old")}), nil), store.Completed, "old", nil},
		"it happened, by codec":   {reconcilerOf(semel.Happened(5), nil), store.Completed, "5", nil},
		"it did not happen":       {reconcilerOf(semel.DidNotHappen(), nil), store.Completed, "fresh", nil},
		"it failed for good":      {reconcilerOf(semel.FailedForGood(declined), nil), store.Failed, "", declined},
		"not known":               {reconcilerOf(semel.Verdict{}, nil), store.Unknown, "", semel.ErrParked},
		"the reconciler fails":    {reconcilerOf(semel.DidNotHappen(), errBoom), store.Unknown, "", errBoom},
		"it cannot be encoded":    {reconcilerOf(semel.Happened(func() {}), nil), store.Unknown, "", semel.ErrParked},
		"there is no reconciler":  {nil, store.Unknown, "", semel.ErrParked},
		"the failure was not set": {reconcilerOf(semel.FailedForGood(nil), nil), store.Failed, "", &semel.Failure{Code: "failed"}},
	} {
		t.Run(name, func(t *testing.T) {
			st := memstore.New(nil)
			g := parking(t, st, c.r)
			_, err := guard(t, st, &semel.Options{OnDoubt: semel.Park}).Run(t.Context(), ann("k"), fail(errBoom))
			wantErr(t, err, semel.ErrParked)
			parked := record(t, g, "k")
			res, err := g.Run(t.Context(), ann("k"), answer("fresh"))
			if !errors.Is(err, c.err) || string(res.Body) != c.body {
				t.Errorf("got %q, %v; want %q, %v", res.Body, err, c.body, c.err)
			}
			if r := wantState(t, g, "k", c.state); c.r != nil && r.Fence <= parked.Fence {
				t.Errorf("fence %d after %d, want a higher one", r.Fence, parked.Fence)
			}
		})
	}
}

func TestReconcile_DownstreamKey_IsTheHandlers(t *testing.T) {
	st := memstore.New(nil)
	var handler, asked string
	g := parking(t, st, func(_ context.Context, x *semel.Execution) (semel.Verdict, error) {
		asked = x.DownstreamKey("psp")
		return semel.DidNotHappen(), nil
	})
	_, err := g.Run(t.Context(), ann("k"), func(_ context.Context, x *semel.Execution) (store.Outcome, error) {
		handler = x.DownstreamKey("psp")
		return store.Outcome{}, errBoom
	})
	wantErr(t, err, semel.ErrParked)
	if n, err := g.Reconcile(t.Context(), pay, 10); n != 1 || err != nil || asked != handler || asked == "" {
		t.Errorf("%d calls decided, %v; the handler's key is %q, the reconciler's %q", n, err, handler, asked)
	}
}

func TestReconcile_ManyCalls_AskOnce(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		st := memstore.New(nil)
		var asked atomic.Int64 // a faulty Guard asks several times at once
		g := parking(t, st, func(context.Context, *semel.Execution) (semel.Verdict, error) {
			asked.Add(1)
			time.Sleep(time.Minute) // longer than the lease, which is renewed
			return semel.Happened(store.Outcome{Body: []byte("one")}), nil
		})
		_, _ = g.Run(t.Context(), ann("k"), fail(errBoom))
		_, replayed, errs := runMany(t.Context(), g, 20, waiting("k", 2*time.Minute), never(t))
		if asked.Load() != 1 || replayed != 20 {
			t.Errorf("asked %d times, %d got a replay, errors %v", asked.Load(), replayed, errs)
		}
	})
}

// No attempt has failed while the calls waited, so one of them may run.
func TestReconcile_DidNotHappen_OneOfWaitingCallsRuns(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		st := memstore.New(nil)
		g := parking(t, st, func(context.Context, *semel.Execution) (semel.Verdict, error) {
			time.Sleep(time.Second)
			return semel.DidNotHappen(), nil
		})
		_, _ = g.Run(t.Context(), ann("k"), fail(errBoom))
		go func() { _, _ = g.Reconcile(t.Context(), pay, 1) }()
		synctest.Wait()
		ran, replayed, errs := runMany(t.Context(), g, 20, waiting("k", time.Minute), slowly)
		if ran != 1 || replayed != 19 {
			t.Errorf("%d ran, %d got a replay, errors %v", ran, replayed, errs)
		}
	})
}

// A reconciler that panics has not said that the effect did not happen.
func TestReconcile_Panics_CallStaysParked(t *testing.T) {
	st := memstore.New(nil)
	g := parking(t, st, func(context.Context, *semel.Execution) (semel.Verdict, error) { panic("dead") })
	_, _ = g.Run(t.Context(), ann("k"), fail(errBoom))
	func() {
		defer func() { _ = recover() }()
		_, _ = g.Reconcile(t.Context(), pay, 1)
	}()
	wantState(t, g, "k", store.Unknown)
}

// ErrOutcomeNotStored says that the result is valid, and ErrNotKept that the work is
// done. Neither is true for a parked call, so its error must not have these reasons
// of the reconciler's run.
func TestReconcile_OwnRunFails_CallIsOnlyParked(t *testing.T) {
	yes := reconcilerOf(semel.Happened("yes"), nil)
	fails := func(err error) reconciler { return reconcilerOf(semel.Verdict{}, err) }
	for name, c := range map[string]struct {
		reconcile reconciler
		settle    error
	}{
		"its verdict is not stored":                 {yes, errBoom},
		"its lease is lost":                         {yes, store.ErrLeaseLost},
		"its lease is lost, and it is undecided":    {fails(errBoom), store.ErrLeaseLost},
		"its own call is done and not kept":         {fails(&semel.Error{Reason: semel.ErrNotKept}), nil},
		"its own call is done and not stored":       {fails(fmt.Errorf("%w", semel.ErrOutcomeNotStored)), nil},
		"its own call lost its lease":               {fails(&semel.Error{Reason: semel.ErrLeaseLost}), nil},
		"its own call failed":                       {fails(semel.Final(errBoom)), nil},
		"its error is not stored, nor its own call": {fails(&semel.Error{Reason: semel.ErrOutcomeNotStored}), errBoom},
	} {
		t.Run(name, func(t *testing.T) {
			st := &hooks{Store: memstore.New(nil)}
			g := guard(t, st, &semel.Options{OnDoubt: semel.Park, Reconcile: c.reconcile, SettleTimeout: 20 * time.Millisecond})
			_, err := g.Run(t.Context(), ann("k"), fail(errBoom))
			wantErr(t, err, semel.ErrParked)
			if c.settle != nil {
				st.settle = func(_ context.Context, l store.Lease, _ store.Settlement) error {
					if c.settle == store.ErrLeaseLost { // another process has parked the call
						f, err := st.Store.Get(t.Context(), l.Key)
						if err == nil {
							_, err = st.Store.Swap(t.Context(), f.Record.Seen(), store.Proposal{Key: l.Key, State: store.Unknown, Policy: semel.Park, Owner: store.Owner{7}, Attempt: 1})
						}
						if err != nil {
							t.Error(err)
						}
					}
					return c.settle
				}
			}
			_, err = semel.Do(t.Context(), g, ann("k"), func(context.Context, *semel.Execution) (string, error) {
				t.Error("the handler ran")
				return "", nil
			})
			wantErr(t, err, semel.ErrParked)
			for _, not := range []error{semel.ErrOutcomeNotStored, semel.ErrNotKept, semel.ErrLeaseLost} {
				if errors.Is(err, not) {
					t.Errorf("a parked call got %v, want only ErrParked", err)
				}
			}
			if _, ok := errors.AsType[*semel.Failure](err); ok {
				t.Errorf("a parked call got a Failure, as if it were kept: %v", err)
			}
		})
	}
}

func TestReconcile_ClaimGivenBack_CallStaysParked(t *testing.T) {
	for name, lossy := range map[string]func(st store.Store, leave func()) *hooks{
		"the caller left": func(st store.Store, leave func()) *hooks {
			h := &hooks{Store: st}
			h.swap = func(ctx context.Context, seen store.Seen, p store.Proposal) (store.Found, error) {
				f, err := st.Swap(ctx, seen, p)
				leave()
				return f, err
			}
			return h
		},
		"no reply came": func(st store.Store, _ func()) *hooks {
			h := &hooks{Store: st}
			sent := 0
			h.swap = func(ctx context.Context, seen store.Seen, p store.Proposal) (store.Found, error) {
				f, err := st.Swap(ctx, seen, p)
				if sent++; sent <= 4 { // the requests of the call; the one in the background gets its reply
					return store.Found{}, errBoom
				}
				return f, err
			}
			return h
		},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				st := memstore.New(nil)
				_, _ = parking(t, st, nil).Run(t.Context(), ann("k"), fail(errBoom))
				ctx, leave := context.WithCancel(t.Context())
				defer leave()
				g := parking(t, lossy(st, leave), func(context.Context, *semel.Execution) (semel.Verdict, error) {
					t.Error("the reconciler was asked, although its claim was given back")
					return semel.Verdict{}, nil
				})
				if n, err := g.Reconcile(ctx, pay, 1); n != 0 || err == nil {
					t.Errorf("%d calls decided, %v; want 0 and an error", n, err)
				}
				time.Sleep(5 * time.Second)
				wantState(t, g, "k", store.Unknown)
			})
		})
	}
}

// An operator needs the first cause of the doubt. The record keeps it, although
// reconcilers were asked several times and did not decide, or died.
func TestReconcile_Undecided_KeepsFirstCause(t *testing.T) {
	st, pass := newClockedStore()
	g := parking(t, st, reconcilerOf(semel.Verdict{}, errBoom))
	_, _ = g.Run(t.Context(), ann("k"), fail(errors.New("the bank hung up")))
	for range 3 {
		_, _ = g.Reconcile(t.Context(), pay, 1)
	}
	wantTexts := func(texts ...string) {
		t.Helper()
		last := wantState(t, g, "k", store.Unknown).LastError
		for _, text := range texts {
			if strings.Count(last, text) != 1 {
				t.Errorf("LastError is %q, want %q once", last, text)
			}
		}
	}
	wantTexts("the bank hung up", "boom")

	died := record(t, g, "k")
	if f, err := st.Swap(t.Context(), died.Seen(), store.Proposal{ // the claim of a reconciler that dies
		Key: died.Key, State: store.Processing, Policy: semel.Park, Owner: store.Owner{1}, Holder: "host/1 reconciling",
		Attempt: died.Attempt, Lease: time.Second, Error: died.LastError,
	}); err != nil || !f.Won {
		t.Fatalf("won %v, %v", f.Won, err)
	}
	pass(time.Minute)
	_, err := guard(t, st, &semel.Options{OnDoubt: semel.Park}).Run(t.Context(), ann("k"), never(t))
	wantErr(t, err, semel.ErrParked)
	wantTexts("the bank hung up", "the reconciler: host/1 died")
}

// The handler charges in a step, and the reconciler asks the bank by the step's key.
func TestReconcile_StepDownstreamKey_FindsPayment(t *testing.T) {
	for name, o := range map[string]semel.Options{"keys": {}, "hashed keys": {HashKeys: []byte("0123456789abcdef0123456789abcdef")}} {
		var bank []string // the references of the payments
		var nested, asked string
		o.OnDoubt = semel.Park
		o.Reconcile = func(_ context.Context, x *semel.Execution) (semel.Verdict, error) {
			asked = x.StepDownstreamKey("charge#fee", "bank")
			if slices.Contains(bank, x.StepDownstreamKey("charge", "bank")) {
				return semel.Happened("paid"), nil
			}
			return semel.DidNotHappen(), nil
		}
		g := guard(t, memstore.New(nil), &o)
		for range 2 {
			_ = semel.Once(t.Context(), g, ann("k"), func(ctx context.Context, x *semel.Execution) error {
				return semel.Once(ctx, g, x.Step("charge"), func(ctx context.Context, charge *semel.Execution) error {
					bank = append(bank, charge.DownstreamKey("bank"))
					_ = semel.Once(ctx, g, charge.Step("fee"), func(_ context.Context, fee *semel.Execution) error {
						nested = fee.DownstreamKey("bank")
						return nil
					})
					if got := charge.StepDownstreamKey("fee", "bank"); got != nested {
						t.Errorf("%s: the key of the step in the step is %q there, and %q around it", name, nested, got)
					}
					return errBoom // the bank's answer is lost
				})
			})
		}
		if len(bank) != 1 || asked != nested || nested == bank[0] {
			t.Errorf("%s: the bank has the payments %q; the reconciler asked for %q, the step has the key %q", name, bank, asked, nested)
		}
	}
}
