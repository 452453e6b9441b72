package pgstore

import (
	"context"
	"errors"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/semel-go/semel"
	"github.com/semel-go/semel/store"
)

// A Guard with UnprotectedOnOutage must not run its handler beside the transaction that has
// claimed the key. The time of the Guard ends before LockTimeout.
func TestUnprotected_TransactionHoldsKey_DoesNotRun(t *testing.T) {
	t.Parallel()
	for name, full := range map[string]bool{"waits for the row": false, "queues for a place to wait": true} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			s := openNew(t, &Options{LockTimeout: 10 * time.Minute})
			claim(t, s, "connects")
			if full {
				for range cap(s.waitSlots) {
					s.waitSlots <- struct{}{}
				}
			}
			tx := beginTx(t, s, txDefaults)
			if f, err := s.Tx(tx).Claim(t.Context(), proposal("k")); err != nil || !f.Won {
				t.Fatalf("won %v, error %v", f.Won, err)
			}
			runs := 0
			err := runUnprotected(t, s, &runs)
			if !errors.Is(err, semel.ErrUnavailable) || !errors.Is(err, ErrBusy) || !errors.Is(err, store.ErrBusy) {
				t.Errorf("beside the transaction: %v; want ErrUnavailable around ErrBusy", err)
			}
			if err := tx.Commit(t.Context()); err != nil {
				t.Fatal(err)
			}
			if err := runUnprotected(t, s, &runs); !errors.Is(err, semel.ErrUnverifiable) {
				t.Errorf("after the commit: %v, want ErrUnverifiable, which the record gives", err)
			}
			if runs != 0 {
				t.Errorf("the handler ran %d times", runs)
			}
			s.Close()
			if err := runUnprotected(t, s, &runs); err != nil || runs != 1 {
				t.Errorf("without a store: %d runs, error %v; want 1", runs, err)
			}
		})
	}
}

// While a transaction has the row of a key, each claim of it waits before it leaves the
// batches, and claims of one key take turns. A claim whose turn does not come has heard
// nothing, but is no sign of an outage.
func TestUnprotected_TurnDoesNotCome_DoesNotRun(t *testing.T) {
	t.Parallel()
	s := openNew(t, &Options{LockTimeout: 10 * time.Minute})
	claim(t, s, "connects")
	tx := beginTx(t, s, txDefaults)
	if f, err := s.Tx(tx).Claim(t.Context(), proposal("k")); err != nil || !f.Won {
		t.Fatalf("won %v, error %v", f.Won, err)
	}
	var calls sync.WaitGroup
	var runs, busy atomic.Int64
	for range 100 { // 4 s have turns for 40
		calls.Go(func() {
			n := 0
			err := runUnprotected(t, s, &n)
			runs.Add(int64(n))
			if !errors.Is(err, semel.ErrUnavailable) {
				t.Errorf("beside the transaction: %v; want ErrUnavailable", err)
			}
			if errors.Is(err, store.ErrBusy) {
				busy.Add(1) // StoreTimeout may also be over while the claim has its turn
			}
		})
	}
	calls.Wait()
	if n := runs.Load(); n != 0 {
		t.Errorf("%d handlers ran beside the transaction", n)
	}
	if busy.Load() == 0 {
		t.Error("no claim waited for its turn until StoreTimeout")
	}
}

// runUnprotected runs a call of testKey("k") with UnprotectedOnOutage, and counts its handler.
func runUnprotected(t *testing.T, s *Store, runs *int) error {
	t.Helper()
	g, err := semel.New(s, &semel.Options{UnprotectedOnOutage: true, StoreTimeout: 4 * time.Second})
	if err != nil {
		t.Fatal(err)
	}
	k := testKey("k")
	_, err = g.Run(t.Context(), semel.Call{Operation: k.Operation, Tenant: k.Tenant, Key: k.Value, Payload: semel.JSON(1)},
		func(context.Context, *semel.Execution) (store.Outcome, error) {
			*runs++
			return store.Outcome{}, nil
		})
	return err
}
