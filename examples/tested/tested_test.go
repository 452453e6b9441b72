// Package tested shows how to test a guarded function: a duplicate, the end of the
// retention, an outage of the store, and doubt.
package tested

import (
	"context"
	"errors"
	"testing"
	"time"

	"github.com/semel-go/semel"
	"github.com/semel-go/semel/store/memstore"
	"github.com/semel-go/semel/store/storetest"
)

// bank stands for the other system. It keeps the charges by the key that it was given.
type bank struct {
	charges map[string]int
	silent  bool // it charges, and its answer is lost
}

func (b *bank) charge(key string) error {
	b.charges[key]++
	if b.silent {
		return errors.New("the bank has not answered")
	}
	return nil
}

// pay is the function to test.
func pay(ctx context.Context, guard *semel.Guard, b *bank, order string) (receipt string, err error) {
	call := semel.Call{Operation: "charge", Tenant: "ann", Key: order, Payload: semel.NoPayload()}
	return semel.Do(ctx, guard, call, func(ctx context.Context, x *semel.Execution) (string, error) {
		return "receipt of " + order, b.charge(x.DownstreamKey("bank"))
	})
}

func TestPay_Duplicate_ChargesOnceUntilTheOutcomeExpires(t *testing.T) {
	now, b := time.Now(), &bank{charges: map[string]int{}}
	guard, err := semel.New(memstore.New(&memstore.Options{Now: func() time.Time { return now }}), nil)
	if err != nil {
		t.Fatal(err)
	}
	for _, step := range []struct {
		later time.Duration
		runs  int
	}{{0, 1}, {0, 1}, {23 * time.Hour, 1}, {2 * time.Hour, 2}} {
		now = now.Add(step.later)
		if receipt, err := pay(t.Context(), guard, b, "order-17"); err != nil || receipt != "receipt of order-17" {
			t.Errorf("%q, %v", receipt, err)
		}
		for _, runs := range b.charges { // there is one key
			if runs != step.runs {
				t.Errorf("charged %d times, want %d", runs, step.runs)
			}
		}
	}
}

func TestPay_StoreDown_NothingIsCharged(t *testing.T) {
	st := storetest.NewFault(memstore.New(nil), func(storetest.Op, int) storetest.Mode { return storetest.Before })
	guard, err := semel.New(st, &semel.Options{StoreTimeout: 50 * time.Millisecond})
	if err != nil {
		t.Fatal(err)
	}
	b := &bank{charges: map[string]int{}}
	if _, err := pay(t.Context(), guard, b, "order-17"); !errors.Is(err, semel.ErrUnavailable) || len(b.charges) != 0 {
		t.Errorf("%v, charged %v", err, b.charges)
	}
}

func TestPay_OutcomeIsNotStored_ReceiptIsValid(t *testing.T) {
	st := storetest.NewFault(memstore.New(nil), func(op storetest.Op, n int) storetest.Mode {
		if op == storetest.OpSettle {
			return storetest.Before
		}
		return storetest.None
	})
	guard, err := semel.New(st, &semel.Options{SettleTimeout: 50 * time.Millisecond})
	if err != nil {
		t.Fatal(err)
	}
	receipt, err := pay(t.Context(), guard, &bank{charges: map[string]int{}}, "order-17")
	if !errors.Is(err, semel.ErrOutcomeNotStored) || receipt != "receipt of order-17" {
		t.Errorf("%q, %v", receipt, err)
	}
}

func TestPay_BankIsSilent_IsParkedUntilTheReconcilerAsks(t *testing.T) {
	b := &bank{charges: map[string]int{}, silent: true}
	guard, err := semel.New(memstore.New(nil), &semel.Options{
		OnDoubt: semel.Park,
		Reconcile: func(ctx context.Context, x *semel.Execution) (semel.Verdict, error) {
			if b.charges[x.DownstreamKey("bank")] == 0 {
				return semel.Verdict{}, errors.New("the charge may still be on its way")
			}
			return semel.Happened("receipt of order-17"), nil
		},
	})
	if err != nil {
		t.Fatal(err)
	}
	if _, err := pay(t.Context(), guard, b, "order-17"); !errors.Is(err, semel.ErrParked) {
		t.Fatal(err)
	}
	receipt, err := pay(t.Context(), guard, b, "order-17") // a duplicate asks the reconciler
	if err != nil || receipt != "receipt of order-17" || len(b.charges) != 1 {
		t.Errorf("%q, %v, charged %v", receipt, err, b.charges)
	}
}
