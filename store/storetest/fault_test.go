package storetest_test

import (
	"context"
	"errors"
	"sync"
	"testing"
	"time"

	"github.com/semel-go/semel/store"
	"github.com/semel-go/semel/store/memstore"
	"github.com/semel-go/semel/store/storetest"
)

var faultKey = store.Key{Operation: "op", Value: "k"}

func claimOf(owner byte) store.Proposal {
	return store.Proposal{Key: faultKey, State: store.Processing, Owner: store.Owner{owner}, Attempt: 1, Lease: time.Hour}
}

// always injects m into each call.
func always(m storetest.Mode) func(storetest.Op, int) storetest.Mode {
	return func(storetest.Op, int) storetest.Mode { return m }
}

// held reads whether the wrapped store has the record.
func held(t *testing.T, st store.Store) bool {
	t.Helper()
	_, err := st.Get(t.Context(), faultKey)
	if err != nil && !errors.Is(err, store.ErrNotFound) {
		t.Fatal(err)
	}
	return err == nil
}

func TestFault_EachMode_AppliesOrNot(t *testing.T) {
	for _, c := range []struct {
		mode            storetest.Mode
		fails, recorded bool
	}{
		{storetest.None, false, true},
		{storetest.Before, true, false},
		{storetest.LostReply, true, true},
		{storetest.Twice, false, true},
		{storetest.Late, true, false},
	} {
		t.Run(c.mode.String(), func(t *testing.T) {
			inner := memstore.New(nil)
			f := storetest.NewFault(inner, always(c.mode))
			found, err := f.Claim(t.Context(), claimOf(1))
			if errors.Is(err, storetest.ErrInjected) != c.fails || (err == nil) == c.fails {
				t.Errorf("Claim: error %v, want one: %v", err, c.fails)
			}
			if found.Won == c.fails {
				t.Errorf("Claim: won %v", found.Won)
			}
			if got := held(t, inner); got != c.recorded {
				t.Errorf("the wrapped store has the record: %v, want %v", got, c.recorded)
			}
			if n := f.Count(storetest.OpClaim, c.mode); n != 1 || f.Calls(storetest.OpClaim) != 1 {
				t.Errorf("counted %d of %d calls", n, f.Calls(storetest.OpClaim))
			}
		})
	}
}

func TestFault_Twice_SendsTheSameCallAgain(t *testing.T) {
	inner := storetest.NewFault(memstore.New(nil), nil)
	f := storetest.NewFault(inner, always(storetest.Twice))
	first, err := f.Claim(t.Context(), claimOf(1))
	if err != nil || !first.Won || inner.Calls(storetest.OpClaim) != 2 {
		t.Fatalf("Claim: won %v, error %v, sent %d times", first.Won, err, inner.Calls(storetest.OpClaim))
	}
	if err := f.Settle(t.Context(), first.Record.Lease(), store.Settlement{State: store.Completed, Keep: time.Hour}); err != nil {
		t.Errorf("Settle: %v", err)
	}
}

func TestFault_Late_AppliedByDeliver(t *testing.T) {
	inner := memstore.New(nil)
	late := true
	f := storetest.NewFault(inner, func(op storetest.Op, n int) storetest.Mode {
		if late {
			return storetest.Late
		}
		return storetest.None
	})
	_, _ = f.Claim(t.Context(), claimOf(1))
	_, _ = f.Claim(t.Context(), claimOf(2))
	late = false
	if found, err := f.Claim(t.Context(), claimOf(3)); err != nil || !found.Won {
		t.Fatalf("Claim: won %v, error %v", found.Won, err)
	}
	if n := f.Deliver(t.Context()); n != 2 {
		t.Errorf("Deliver applied %d calls, want 2", n)
	}
	if found, err := inner.Get(t.Context(), faultKey); err != nil || found.Record.Owner != (store.Owner{3}) {
		t.Errorf("after the late claims the owner is %v, error %v", found.Record.Owner, err)
	}
	if n := f.Deliver(t.Context()); n != 0 {
		t.Errorf("Deliver applied %d calls a second time", n)
	}
}

func TestFault_LateRenewal_KeepsItsLeases(t *testing.T) {
	inner := memstore.New(nil)
	found, err := inner.Claim(t.Context(), claimOf(1))
	if err != nil {
		t.Fatal(err)
	}
	f := storetest.NewFault(inner, always(storetest.Late))
	leases := []store.Lease{found.Record.Lease()}
	_, _ = f.Renew(t.Context(), leases, 5*time.Hour)
	leases[0] = store.Lease{} // the caller's slice is its own again
	f.Deliver(t.Context())
	if now, err := inner.Get(t.Context(), faultKey); err != nil || now.Record.Until.Sub(now.Record.Updated) != 5*time.Hour {
		t.Errorf("a late renewal was applied to other leases: %v, error %v", now.Record.Until, err)
	}
}

func TestFault_Stall_EndsWithContext(t *testing.T) {
	inner := memstore.New(nil)
	f := storetest.NewFault(inner, always(storetest.Stall))
	ctx, cancel := context.WithCancel(t.Context())
	done := make(chan error)
	go func() {
		_, err := f.Claim(ctx, claimOf(1))
		done <- err
	}()
	cancel()
	if err := <-done; !errors.Is(err, storetest.ErrInjected) || !errors.Is(err, context.Canceled) {
		t.Errorf("a stalled claim: %v, want ErrInjected and the context's error", err)
	}
	if held(t, inner) {
		t.Error("a stalled claim was applied")
	}
}

func TestFault_EachMethod_Reached(t *testing.T) {
	ctx := t.Context()
	f := storetest.NewFault(memstore.New(nil), always(storetest.Before))
	_, claim := f.Claim(ctx, claimOf(1))
	_, swap := f.Swap(ctx, store.Seen{Key: faultKey}, claimOf(1))
	_, renew := f.Renew(ctx, nil, time.Hour)
	settle := f.Settle(ctx, store.Lease{Key: faultKey}, store.Settlement{State: store.Completed})
	_, get := f.Get(ctx, faultKey)
	_, sweep := f.Sweep(ctx, "", 1)
	for op, err := range []error{claim, swap, renew, settle, get, sweep} {
		if !errors.Is(err, storetest.ErrInjected) || errors.Is(err, store.ErrNotFound) || errors.Is(err, store.ErrLeaseLost) {
			t.Errorf("%v: %v, want ErrInjected and nothing that the caller could take for an answer", storetest.Op(op), err)
		}
		if n := f.Count(storetest.Op(op), storetest.Before); n != 1 {
			t.Errorf("%v: counted %d", storetest.Op(op), n)
		}
	}
}

func TestFault_CallsNumberedPerMethod(t *testing.T) {
	var mu sync.Mutex
	asked := map[storetest.Op][]int{}
	f := storetest.NewFault(memstore.New(nil), func(op storetest.Op, n int) storetest.Mode {
		mu.Lock()
		defer mu.Unlock()
		asked[op] = append(asked[op], n)
		return storetest.None
	})
	for range 3 {
		_, _ = f.Claim(t.Context(), claimOf(1))
	}
	_, _ = f.Get(t.Context(), faultKey)
	if got := asked[storetest.OpClaim]; len(got) != 3 || got[0] != 1 || got[2] != 3 {
		t.Errorf("claims were numbered %v, want 1, 2, 3", got)
	}
	if got := asked[storetest.OpGet]; len(got) != 1 || got[0] != 1 {
		t.Errorf("reads were numbered %v, want 1", got)
	}
}

func TestFault_ConcurrentUse_Safe(t *testing.T) {
	f := storetest.NewFault(memstore.New(nil), storetest.Chance(1, 0.5, storetest.Before, storetest.LostReply, storetest.Twice, storetest.Late))
	var wg sync.WaitGroup
	const goroutines, calls = 8, 200
	for range goroutines {
		wg.Go(func() {
			for range calls {
				_, _ = f.Claim(t.Context(), claimOf(1))
				f.Deliver(t.Context())
			}
		})
	}
	wg.Wait()
	sum := 0
	for _, m := range []storetest.Mode{storetest.None, storetest.Before, storetest.LostReply, storetest.Twice, storetest.Late} {
		sum += f.Count(storetest.OpClaim, m)
	}
	if sum != goroutines*calls || f.Calls(storetest.OpClaim) != sum {
		t.Errorf("counted %d calls by mode and %d in all, want %d", sum, f.Calls(storetest.OpClaim), goroutines*calls)
	}
}

func TestChance_InjectsAtItsRate(t *testing.T) {
	const n = 20_000
	inject := storetest.Chance(7, 0.3, storetest.Before, storetest.Twice)
	counts := map[storetest.Mode]int{}
	for i := range n {
		m := inject(storetest.OpSettle, i)
		if m != inject(storetest.OpSettle, i) {
			t.Fatal("the same call of the same seed went in two ways")
		}
		counts[m]++
	}
	for m, want := range map[storetest.Mode]float64{storetest.None: 0.7, storetest.Before: 0.15, storetest.Twice: 0.15} {
		if got := float64(counts[m]) / n; got < want-0.02 || got > want+0.02 {
			t.Errorf("%v came with frequency %.3f, want about %.2f", m, got, want)
		}
	}
	if storetest.Chance(7, 1)(storetest.OpGet, 1) != storetest.None {
		t.Error("with no modes to choose from a fault was injected")
	}
}

func TestFault_Unwrap_ReturnsStore(t *testing.T) {
	inner := memstore.New(nil)
	var st store.Store = storetest.NewFault(storetest.NewFault(inner, nil), nil)
	if l, ok := store.As[store.Lister](st); !ok || l != store.Lister(inner) {
		t.Errorf("As found the Lister %v, %v", l, ok)
	}
	if storetest.Op(99).String() != "Op(99)" || storetest.Mode(99).String() != "Mode(99)" {
		t.Error("unknown values have no names")
	}
}
