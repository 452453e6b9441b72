package erase_test

import (
	"context"
	"errors"
	"testing"
	"time"

	"github.com/semel-go/semel"
	"github.com/semel-go/semel/erase"
	"github.com/semel-go/semel/saga"
	"github.com/semel-go/semel/store"
	"github.com/semel-go/semel/store/memstore"
)

func TestRun_Tenant_ErasesWhatIsOverAndNothingElse(t *testing.T) {
	st := memstore.New(nil)
	everyState(t, st, "ann")
	everyState(t, st, "bob")
	want := erase.Report{Erased: 3, Running: 2, InDoubt: 1}
	if r := mustRun(t, st, erase.Scope{Tenant: "ann"}, &erase.Options{CountOnly: true}); r != want || len(states(t, st, "ann")) != 6 {
		t.Errorf("counted %+v, want %+v; left %v", r, want, states(t, st, "ann"))
	}
	left := map[string]erase.Item{}
	observe := func(_ context.Context, i erase.Item) {
		if i.Result != erase.Erased {
			left[i.Key.Value] = i
		}
	}
	if r := mustRun(t, st, erase.Scope{Tenant: "ann"}, &erase.Options{Observe: observe}); r != want || r.Left() != 3 {
		t.Errorf("erased %+v, want %+v", r, want)
	}
	for key, result := range map[string]erase.Result{"unknown": erase.InDoubt, "started": erase.Running, "processing": erase.Running} {
		if i := left[key]; i.Result != result || i.Err == nil || i.State.String() != key || i.Fence == 0 {
			t.Errorf("%s: observed %+v, want result %v and an error", key, i, result)
		}
	}
	if got := states(t, st, "ann"); len(got) != 3 || len(left) != 3 {
		t.Errorf("the records of ann are %v, and %v were observed as left", got, left)
	}
	if got := states(t, st, "bob"); len(got) != 6 {
		t.Errorf("the records of bob are %v, want all six", got)
	}
	if r := mustRun(t, st, erase.Scope{Tenant: "ann"}, nil); r != (erase.Report{Running: 2, InDoubt: 1}) {
		t.Errorf("once more: %+v", r)
	}
}

func TestRun_LaterDuplicate_RunsAgainWithHigherFence(t *testing.T) {
	now := time.Now()
	st := memstore.New(&memstore.Options{Now: func() time.Time { return now }})
	g := guard(t, st, nil)
	_, _ = run(t, g, call("ann", "k"), nil)
	k := store.Key{Operation: "pay", Tenant: "ann", Value: "k"}
	before, err := st.Get(t.Context(), k)
	if err != nil {
		t.Fatal(err)
	}
	mustRun(t, st, erase.Scope{Tenant: "ann", Operation: "pay", Key: "k"}, nil)
	now = now.Add(-time.Hour)
	if runs, err := run(t, g, call("ann", "k"), nil); runs != 1 || err != nil {
		t.Errorf("the duplicate ran %d times, error %v; want once", runs, err)
	}
	if after, err := st.Get(t.Context(), k); err != nil || after.Record.Fence <= before.Record.Fence {
		t.Errorf("the fence was %d and is %d, error %v", before.Record.Fence, after.Record.Fence, err)
	}
}

func TestRun_StepsOfUnfinishedCall_AreKept(t *testing.T) {
	st := memstore.New(nil)
	g := guard(t, st, nil)
	charges := 0
	attempt := func() {
		_, _ = g.Run(t.Context(), call("ann", "half"), func(ctx context.Context, x *semel.Execution) (store.Outcome, error) {
			_, err := semel.Do(ctx, g, x.Step("charge"), func(context.Context, *semel.Execution) (int, error) { charges++; return 1, nil })
			return store.Outcome{}, errors.Join(err, errors.New("the stock does not answer"))
		})
	}
	attempt()
	if r := mustRun(t, st, erase.Scope{Tenant: "ann"}, nil); r != (erase.Report{Unfinished: 1}) {
		t.Errorf("erased %+v, want the call to be left", r)
	}
	if attempt(); charges != 1 {
		t.Errorf("the next attempt charged again: %d times", charges)
	}
}

func TestRun_Sagas_EndedAreErasedAndOpenAreKept(t *testing.T) {
	st := memstore.New(nil)
	fail := errors.New("the bank does not answer")
	orders, err := saga.New(guard(t, st, nil), saga.Definition[string, string]{
		Name: "order", Steps: []string{"charge"},
		Run: func(ctx context.Context, r *saga.Run, in string) (string, error) {
			return saga.Step(ctx, r, "charge", func(context.Context, saga.At) (string, error) {
				if in == "open" {
					return "", fail
				}
				return canary, nil
			}, nil)
		},
	})
	if err != nil {
		t.Fatal(err)
	}
	if _, err := orders.Do(t.Context(), "ann", "ended", "ended"); err != nil {
		t.Fatal(err)
	}
	if err := orders.Start(t.Context(), "ann", "open", "open"); err != nil {
		t.Fatal(err)
	}
	// A process died after the end of its saga, and before it dropped the timer.
	if _, err := st.SetTimer(t.Context(), saga.Key("order", "ann", "ended"), store.Owner{}, store.Owner{1}, time.Hour); err != nil {
		t.Fatal(err)
	}
	if _, err := st.SetTimer(t.Context(), saga.Key("order", "bob", "other"), store.Owner{}, store.Owner{2}, time.Hour); err != nil {
		t.Fatal(err)
	}
	if r := mustRun(t, st, erase.Scope{Tenant: "ann", Operation: "order"}, nil); r.Erased != 1 || r.Left() != 1 || r.Timers != 1 {
		t.Errorf("erased %+v, want one record, one timer, and one left", r)
	}
	due, _, err := st.DueTimers(t.Context(), saga.Key("order", "", "").Operation, 24*time.Hour, 10)
	if err != nil || len(due) != 2 {
		t.Errorf("the timers are %v, error %v; want those of the open saga and of the other tenant", due, err)
	}
}

// endedSaga is a store with a record of a saga that has ended, and whose process died before
// it dropped the timer.
func endedSaga(t *testing.T) *memstore.Store {
	t.Helper()
	st := memstore.New(nil)
	orders, err := saga.New(guard(t, st, nil), saga.Definition[string, string]{
		Name: "order", Steps: []string{"charge"},
		Run: func(context.Context, *saga.Run, string) (string, error) { return canary, nil },
	})
	if err != nil {
		t.Fatal(err)
	}
	if _, err := orders.Do(t.Context(), "ann", "ended", "ended"); err != nil {
		t.Fatal(err)
	}
	if _, err := st.SetTimer(t.Context(), saga.Key("order", "ann", "ended"), store.Owner{}, store.Owner{1}, time.Hour); err != nil {
		t.Fatal(err)
	}
	return st
}

func timersOf(t *testing.T, st *memstore.Store, name string) int {
	t.Helper()
	due, _, err := st.DueTimers(t.Context(), saga.Key(name, "", "").Operation, 24*time.Hour, 10)
	if err != nil {
		t.Fatal(err)
	}
	return len(due)
}

// An erasure that is killed after it has deleted a record leaves no timer of it: a timer has
// the tenant and the id, and the next erasure would not find the saga's name any more.
func TestRun_KilledAfterRecord_LeavesNoTimer(t *testing.T) {
	st := endedSaga(t)
	ctx, kill := context.WithCancel(t.Context())
	_, err := erase.Run(ctx, st, erase.Scope{Tenant: "ann"}, &erase.Options{Observe: func(context.Context, erase.Item) { kill() }})
	if !errors.Is(err, semel.ErrUnavailable) || len(states(t, st, "ann")) != 0 {
		t.Fatalf("error %v, with the records %v; want an erasure that was killed after the record", err, states(t, st, "ann"))
	}
	if n := timersOf(t, st, "order"); n != 0 {
		t.Errorf("%d timers are left", n)
	}
}

// An erasure that names the operation drops the timer of a saga whose record is gone, such as
// one that a sweep has deleted.
func TestRun_TimerWithoutRecord_IsDroppedIfOperationIsNamed(t *testing.T) {
	for _, key := range []string{"", "ended"} {
		st := memstore.New(nil)
		for id, tenant := range map[string]string{"ended": "ann", "other": "bob"} {
			if _, err := st.SetTimer(t.Context(), saga.Key("order", tenant, id), store.Owner{}, store.Owner{1}, time.Hour); err != nil {
				t.Fatal(err)
			}
		}
		if r := mustRun(t, st, erase.Scope{Tenant: "ann", Operation: "order", Key: key}, nil); r != (erase.Report{Timers: 1}) || timersOf(t, st, "order") != 1 {
			t.Errorf("key %q: erased %+v, %d timers are left; want that of the other tenant", key, r, timersOf(t, st, "order"))
		}
	}
}

// racing is a store in which another process changes a record between the read of it and
// its erasure.
type racing struct {
	*memstore.Store
	t *testing.T
}

func (r racing) Erase(ctx context.Context, seen store.Seen) error {
	p := store.Proposal{Key: seen.Key, State: store.Processing, Owner: store.Owner{7}, Attempt: 2, Lease: time.Hour}
	if f, err := r.Swap(ctx, seen, p); err != nil || !f.Won {
		r.t.Fatalf("the other process: won %v, error %v", f.Won, err)
	}
	return r.Store.Erase(ctx, seen)
}

func TestRun_RecordChangesMeanwhile_IsLeft(t *testing.T) {
	st := racing{memstore.New(nil), t}
	_, _ = run(t, guard(t, st, nil), call("ann", "k"), errors.New("again"))
	var why error
	r := mustRun(t, st, erase.Scope{Tenant: "ann"}, &erase.Options{Observe: func(_ context.Context, i erase.Item) { why = i.Err }})
	if r != (erase.Report{Failed: 1}) || !errors.Is(why, store.ErrChanged) || states(t, st, "ann")["k"] != store.Processing {
		t.Errorf("erased %+v because of %v; the records are %v", r, why, states(t, st, "ann"))
	}
}

// failing is a store whose first erasures are lost, before or after the store.
type failing struct {
	*memstore.Store
	left    int
	applied bool
}

var errLost = errors.New("connection lost")

func (f *failing) Erase(ctx context.Context, seen store.Seen) error {
	if f.left > 0 {
		f.left--
		if f.applied {
			_ = f.Store.Erase(ctx, seen)
		}
		return errLost
	}
	return f.Store.Erase(ctx, seen)
}

func TestRun_StoreFails_RepeatsAndCanBeResumed(t *testing.T) {
	for _, applied := range []bool{false, true} {
		st := &failing{Store: memstore.New(nil), left: 2, applied: applied}
		everyState(t, st, "ann")
		if r := mustRun(t, st, erase.Scope{Tenant: "ann"}, nil); r.Erased != 3 {
			t.Errorf("applied %v: erased %+v, want 3", applied, r)
		}
	}
	st := &failing{Store: memstore.New(nil), left: 4}
	everyState(t, st, "ann")
	r, err := erase.Run(t.Context(), st, erase.Scope{Tenant: "ann"}, nil)
	if !errors.Is(err, semel.ErrUnavailable) || !errors.Is(err, errLost) {
		t.Errorf("an outage: %+v, error %v, want ErrUnavailable", r, err)
	}
	if again := mustRun(t, st, erase.Scope{Tenant: "ann"}, nil); r.Erased+again.Erased != 3 {
		t.Errorf("first %+v, then %+v; want 3 together", r, again)
	}
}

func TestRun_WrongScope_IsInvalid(t *testing.T) {
	st := memstore.New(nil)
	everyState(t, st, "ann")
	for name, s := range map[string]erase.Scope{
		"nothing": {}, "no tenant": {Operation: "pay"}, "the shared tenant": {Tenant: semel.Shared},
		"a key without an operation": {Tenant: "ann", Key: "completed"}, "a suffix": {Tenant: "ann", Operation: "order##saga"},
	} {
		if r, err := erase.Run(t.Context(), st, s, nil); !errors.Is(err, semel.ErrInvalid) {
			t.Errorf("%s: %+v, error %v, want ErrInvalid", name, r, err)
		}
	}
	if _, err := erase.Run(t.Context(), nil, erase.Scope{Tenant: "ann"}, nil); !errors.Is(err, semel.ErrInvalid) {
		t.Errorf("a nil store: error %v, want ErrInvalid", err)
	}
	if _, err := erase.Run(t.Context(), struct{ store.Store }{st}, erase.Scope{Tenant: "ann"}, nil); !errors.Is(err, semel.ErrInvalid) {
		t.Errorf("a store that cannot erase: error %v, want ErrInvalid", err)
	}
	if got := states(t, st, "ann"); len(got) != 6 {
		t.Errorf("the records are %v, want all six", got)
	}
}

// A key that all tenants share has no tenant. Other keys stay.
func TestRun_KeyWithoutTenant_ErasesThatKey(t *testing.T) {
	st := memstore.New(nil)
	everyState(t, st, "")
	if r := mustRun(t, st, erase.Scope{Operation: "pay", Key: "completed"}, nil); r.Erased != 1 {
		t.Errorf("erased %+v, want one", r)
	}
	if got := states(t, st, ""); len(got) != 5 {
		t.Errorf("the records are %v, want five", got)
	}
}
