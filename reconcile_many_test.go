package semel_test

import (
	"context"
	"errors"
	"fmt"
	"iter"
	"testing"
	"testing/synctest"
	"time"

	"github.com/semel-go/semel"
	"github.com/semel-go/semel/store"
	"github.com/semel-go/semel/store/memstore"
)

// Rules 3 and 17: only the process whose swap wins asks the reconciler.
func TestReconcile_SwapLost_AsksNothing(t *testing.T) {
	st := memstore.New(nil)
	_, err := parking(t, st, nil).Run(t.Context(), ann("k"), fail(errBoom))
	wantErr(t, err, semel.ErrParked)
	g := parking(t, losingSwaps(st), func(context.Context, *semel.Execution) (semel.Verdict, error) {
		t.Error("the reconciler was asked, although another process has the claim")
		return semel.Verdict{}, nil
	})
	if n, err := g.Reconcile(t.Context(), pay, 1); n != 0 || err != nil {
		t.Errorf("%d calls decided, %v; want 0", n, err)
	}
	wantState(t, g, "k", store.Processing)
}

func TestReconcile_Operation_AsksItsParkedCalls(t *testing.T) {
	st := memstore.New(nil)
	n := 0
	g := parking(t, st, func(_ context.Context, x *semel.Execution) (semel.Verdict, error) {
		n++
		switch x.Key() {
		case "a":
			return semel.DidNotHappen(), nil
		case "b":
			return semel.Verdict{}, errBoom
		}
		return semel.Verdict{}, nil
	})
	for _, k := range []string{"a", "b", "c"} {
		_, _ = g.Run(t.Context(), ann(k), fail(errBoom))
	}
	_, _ = g.Run(t.Context(), semel.Call{Operation: "other", Tenant: semel.Shared, Key: "a", Payload: semel.NoPayload()}, fail(errBoom))
	settled, err := g.Reconcile(t.Context(), pay, 10)
	if settled != 1 || n != 3 {
		t.Errorf("%d calls decided of %d asked, %v; want 1 of 3", settled, n, err)
	}
	wantErr(t, err, errBoom)
	if settled, _ = g.Reconcile(t.Context(), "", 10); settled != 1 || n != 6 {
		t.Errorf("all operations: %d calls decided of %d asked, want 1 of 3", settled, n-3)
	}
}

// unreadable is a store with a record that this version cannot read.
type unreadable struct{ *memstore.Store }

func (u unreadable) List(ctx context.Context, f store.Filter) iter.Seq2[store.Found, error] {
	return func(yield func(store.Found, error) bool) {
		if !yield(store.Found{}, fmt.Errorf("a newer format: %w", store.ErrCorrupt)) {
			return
		}
		for fd, err := range u.Store.List(ctx, f) {
			if !yield(fd, err) {
				return
			}
		}
	}
}

// An unreadable record is reported. The other calls are decided all the same.
func TestReconcile_RecordUnreadable_OthersAreDecided(t *testing.T) {
	g := parking(t, unreadable{memstore.New(nil)}, reconcilerOf(semel.DidNotHappen(), nil))
	_, _ = g.Run(t.Context(), ann("k"), fail(errBoom))
	settled, err := g.Reconcile(t.Context(), pay, 10)
	if settled != 1 {
		t.Errorf("%d calls decided, want 1", settled)
	}
	wantErr(t, err, store.ErrCorrupt)
	wantState(t, g, "k", store.Released)
}

// Rule 3: an operator's verdict applies only to the record that the operator has seen.
func TestResolve_RecordChanged_IsRefused(t *testing.T) {
	st := memstore.New(nil)
	g := parking(t, st, nil)
	_, _ = g.Run(t.Context(), ann("k"), fail(errBoom))
	seen := record(t, g, "k")
	wantErr(t, g.Resolve(t.Context(), seen, semel.Verdict{}), semel.ErrInvalid)
	if err := g.Resolve(t.Context(), seen, semel.DidNotHappen()); err != nil {
		t.Fatal(err)
	}
	if r := wantState(t, g, "k", store.Released); r.Fence <= seen.Fence {
		t.Errorf("fence %d after %d, want a higher one", r.Fence, seen.Fence)
	}
	wantErr(t, g.Resolve(t.Context(), seen, semel.Happened(1)), store.ErrChanged) // the record has changed since it was seen
	wantErr(t, g.Resolve(t.Context(), record(t, g, "k"), semel.Happened(1)), store.ErrChanged)

	_, _ = g.Run(t.Context(), ann("k"), fail(errBoom))
	if err := g.Resolve(t.Context(), record(t, g, "k"), semel.Happened(store.Outcome{Body: []byte("seen")})); err != nil {
		t.Fatal(err)
	}
	res, err := g.Run(t.Context(), ann("k"), never(t))
	wantBody(t, res, err, "seen", true)
}

// If the store cannot keep the operator's outcome, it keeps a tombstone.
func TestResolve_VerdictTooLargeForStore_LeavesTombstone(t *testing.T) {
	st := &hooks{Store: memstore.New(nil)}
	swaps := 0
	st.swap = func(ctx context.Context, seen store.Seen, p store.Proposal) (store.Found, error) {
		if swaps++; len(p.Outcome.Body) > 8 {
			return store.Found{}, fmt.Errorf("%w: %d bytes", store.ErrTooLarge, len(p.Outcome.Body))
		}
		return st.Store.Swap(ctx, seen, p)
	}
	g := guard(t, st, &semel.Options{OnDoubt: semel.Park})
	_, err := g.Run(t.Context(), ann("k"), fail(errBoom))
	wantErr(t, err, semel.ErrParked)
	if err := g.Resolve(t.Context(), record(t, g, "k"), semel.Happened("much more than fits")); err != nil || swaps != 2 {
		t.Fatalf("%d swaps, %v; want 2 and no error", swaps, err)
	}
	_, err = g.Run(t.Context(), ann("k"), never(t))
	wantErr(t, err, semel.ErrNotKept)
}

// The store fails at the reconciler's claim. The error has a reason for the caller to
// branch on. If the record is gone, there is nothing to decide and no error.
func TestReconcile_StoreFailsClaim_ErrorHasReason(t *testing.T) {
	gone := errors.New("connection refused")
	for name, c := range map[string]struct {
		answer  error
		reasons []error // of the error; empty: there is no error
	}{
		"no answer":         {gone, []error{semel.ErrUnavailable, gone}},
		"record unreadable": {store.ErrCorrupt, []error{semel.ErrUnavailable, store.ErrCorrupt}},
		"record swept":      {store.ErrNotFound, nil},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				h := &hooks{Store: memstore.New(nil)}
				g := parking(t, h, reconcilerOf(semel.DidNotHappen(), nil))
				_, _ = g.Run(t.Context(), ann("k"), fail(errBoom))
				h.swap = func(context.Context, store.Seen, store.Proposal) (store.Found, error) { return store.Found{}, c.answer }
				n, err := g.Reconcile(t.Context(), pay, 1)
				if n != 0 || err != nil && len(c.reasons) == 0 {
					t.Errorf("%d calls decided, %v; want 0", n, err)
				}
				for _, reason := range c.reasons {
					if !errors.Is(err, reason) {
						t.Errorf("got %v, want %v", err, reason)
					}
				}
				if e, ok := errors.AsType[*semel.Error](err); err != nil && (!ok || e.Operation != pay) {
					t.Errorf("%v does not name the operation", err)
				}
				time.Sleep(time.Minute) // the Guard stops sending its claim
			})
		})
	}
}

func TestResolve_DidNotHappen_NextCallRuns(t *testing.T) {
	st := memstore.New(nil)
	for name, r := range map[string]func(context.Context, *semel.Execution) (semel.Verdict, error){"reconciler": reconcilerOf(semel.DidNotHappen(), nil), "operator": nil} {
		g := guard(t, st, &semel.Options{OnDoubt: semel.Park, MaxAttempts: 1, Reconcile: r})
		_, _ = g.Run(t.Context(), ann(name), fail(errBoom))
		if r == nil {
			if err := g.Resolve(t.Context(), record(t, g, name), semel.DidNotHappen()); err != nil {
				t.Fatal(err)
			}
			if got := record(t, g, name).LastError; got != "an operator decided: it did not happen" {
				t.Errorf("the last error is %q, which does not name the operator", got)
			}
		}
		_, err := g.Run(t.Context(), ann(name), answer("second"))
		if r == nil && err != nil {
			t.Errorf("%s: the next call got %v, want its own run", name, err)
		}
		if exhausted := (&semel.Failure{Code: semel.CodeAttemptsExhausted}); r != nil && !errors.Is(err, exhausted) {
			t.Errorf("%s: got error %v, want the failure of a key without attempts left", name, err)
		}
	}
}

func TestReconcile_MoreThanLimit_AsksAllInTurn(t *testing.T) {
	st, advance := newClockedStore()
	asked := map[string]bool{}
	g := parking(t, st, func(_ context.Context, x *semel.Execution) (semel.Verdict, error) {
		asked[x.Key()] = true
		return semel.Verdict{}, nil
	})
	for i := range 10 {
		_, _ = g.Run(t.Context(), ann(fmt.Sprint(i)), fail(errBoom))
	}
	for range 10 {
		_, _ = g.Reconcile(t.Context(), pay, 2)
		advance(time.Second)
	}
	if len(asked) != 10 {
		t.Errorf("asked about %d of 10 calls", len(asked))
	}
}

func TestReconcile_VerdictNotStored_IsNotCounted(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		st := memstore.New(nil)
		_, _ = parking(t, st, nil).Run(t.Context(), ann("k"), fail(errBoom))
		h := &hooks{Store: st, settle: func(context.Context, store.Lease, store.Settlement) error { return errBoom }}
		n, err := parking(t, h, reconcilerOf(semel.DidNotHappen(), nil)).Reconcile(t.Context(), pay, 1)
		if n != 0 || err == nil {
			t.Errorf("%d calls decided, %v; want 0 and an error; the record is %v", n, err, record(t, parking(t, st, nil), "k").State)
		}
	})
}
