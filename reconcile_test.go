package semel_test

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/semel-go/semel"
	"github.com/semel-go/semel/store"
	"github.com/semel-go/semel/store/memstore"
)

// Rule 17, by the next call with the key.
func TestReconcile_NextCall_FollowsVerdict(t *testing.T) {
	declined := &semel.Failure{Code: "declined"}
	for name, c := range map[string]struct {
		r     reconciler
		state store.State
		body  string // of the next call; "fresh" if it ran
		err   error
	}{
		"it happened":             {says(semel.Happened(store.Outcome{Body: []byte("old")}), nil), store.Completed, "old", nil},
		"it happened, by codec":   {says(semel.Happened(5), nil), store.Completed, "5", nil},
		"it did not happen":       {says(semel.DidNotHappen(), nil), store.Completed, "fresh", nil},
		"it failed for good":      {says(semel.FailedForGood(declined), nil), store.Failed, "", declined},
		"not known":               {says(semel.Verdict{}, nil), store.Unknown, "", semel.ErrParked},
		"the reconciler fails":    {says(semel.DidNotHappen(), errBoom), store.Unknown, "", errBoom},
		"it cannot be encoded":    {says(semel.Happened(func() {}), nil), store.Unknown, "", semel.ErrParked},
		"there is no reconciler":  {nil, store.Unknown, "", semel.ErrParked},
		"the failure was not set": {says(semel.FailedForGood(nil), nil), store.Failed, "", &semel.Failure{Code: "failed"}},
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
				t.Errorf("fence %d after %d; to reconcile raises it", r.Fence, parked.Fence)
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
		t.Errorf("settled %d, %v; keys %q and %q", n, err, handler, asked)
	}
}

func TestReconcile_ManyCalls_AskOnce(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		st := memstore.New(nil)
		var asked atomic.Int64 // with the bug that the museum seeds, many ask at once
		g := parking(t, st, func(context.Context, *semel.Execution) (semel.Verdict, error) {
			asked.Add(1)
			time.Sleep(time.Minute) // longer than the lease: it is renewed
			return semel.Happened(store.Outcome{Body: []byte("one")}), nil
		})
		_, _ = g.Run(t.Context(), ann("k"), fail(errBoom))
		_, replayed, errs := crowd(t.Context(), g, 20, waiting("k", 2*time.Minute), never(t))
		if asked.Load() != 1 || replayed != 20 {
			t.Errorf("asked %d times, %d replayed, errors %v", asked.Load(), replayed, errs)
		}
	})
}

// A reconciler that dies leaves the call parked, and so does one whose claim
// comes to nothing: neither is a "no".
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

// With ErrOutcomeNotStored a result is valid, and with ErrNotKept the work is done.
// Of a call that is parked neither is true, whatever came over its reconciler.
func TestReconcile_OwnRunFails_CallIsOnlyParked(t *testing.T) {
	yes := says(semel.Happened("yes"), nil)
	fails := func(err error) reconciler { return says(semel.Verdict{}, err) }
	for name, c := range map[string]struct {
		reconcile reconciler
		settle    error
	}{
		"its verdict is not stored":                         {yes, errBoom},
		"its lease is lost":                                 {yes, store.ErrLeaseLost},
		"its lease is lost, and it does not know":           {fails(errBoom), store.ErrLeaseLost},
		"a call of its own was done, and not kept":          {fails(&semel.Error{Reason: semel.ErrNotKept}), nil},
		"a call of its own was done, and not stored":        {fails(fmt.Errorf("%w", semel.ErrOutcomeNotStored)), nil},
		"a call of its own lost its lease":                  {fails(&semel.Error{Reason: semel.ErrLeaseLost}), nil},
		"a call of its own failed":                          {fails(semel.Final(errBoom)), nil},
		"its failure is not stored, and it had run another": {fails(&semel.Error{Reason: semel.ErrOutcomeNotStored}), errBoom},
	} {
		t.Run(name, func(t *testing.T) {
			st := &hooks{Store: memstore.New(nil)}
			g := guard(t, st, &semel.Options{OnDoubt: semel.Park, Reconcile: c.reconcile, SettleTimeout: 20 * time.Millisecond})
			_, err := g.Run(t.Context(), ann("k"), fail(errBoom))
			wantErr(t, err, semel.ErrParked)
			if c.settle != nil {
				st.settle = func(_ context.Context, l store.Lease, _ store.Settlement) error {
					if c.settle == store.ErrLeaseLost { // somebody else has parked it
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
					t.Errorf("a parked call is told %v", err)
				}
			}
			if _, is := errors.AsType[*semel.Failure](err); is {
				t.Errorf("a parked call is told a failure that is kept: %v", err)
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
				if sent++; sent <= 4 { // all that the Guard waits for; the background's comes through
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
					t.Error("asked, though the claim came to nothing")
					return semel.Verdict{}, nil
				})
				if n, err := g.Reconcile(ctx, pay, 1); n != 0 || err == nil {
					t.Errorf("settled %d, %v", n, err)
				}
				time.Sleep(5 * time.Second)
				wantState(t, g, "k", store.Unknown)
			})
		})
	}
}

// What made a call unknown is what its operator needs, however often a
// reconciler was asked since, and whether it answered or died.
func TestReconcile_Undecided_KeepsFirstCause(t *testing.T) {
	st, pass := clocked()
	g := parking(t, st, says(semel.Verdict{}, errBoom))
	_, _ = g.Run(t.Context(), ann("k"), fail(errors.New("the bank hung up")))
	for range 3 {
		_, _ = g.Reconcile(t.Context(), pay, 1)
	}
	said := func(both ...string) {
		t.Helper()
		is := wantState(t, g, "k", store.Unknown).LastError
		for _, text := range both {
			if strings.Count(is, text) != 1 {
				t.Errorf("the record says %q; it has to say %q, once", is, text)
			}
		}
	}
	said("the bank hung up", "boom")

	died := record(t, g, "k")
	if f, err := st.Swap(t.Context(), died.Seen(), store.Proposal{ // of a process that dies while it asks
		Key: died.Key, State: store.Processing, Policy: semel.Park, Owner: store.Owner{1}, Holder: "host/1 reconciling",
		Attempt: died.Attempt, Lease: time.Second, Error: died.LastError,
	}); err != nil || !f.Won {
		t.Fatalf("won %v, %v", f.Won, err)
	}
	pass(time.Minute)
	_, err := guard(t, st, &semel.Options{OnDoubt: semel.Park}).Run(t.Context(), ann("k"), never(t))
	wantErr(t, err, semel.ErrParked)
	said("the bank hung up", "host/1 reconciling died")
}
