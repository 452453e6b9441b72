package semel_test

import (
	"context"
	"errors"
	"testing"
	"testing/synctest"
	"time"

	"github.com/semel-go/semel"
	"github.com/semel-go/semel/store"
	"github.com/semel-go/semel/store/memstore"
)

// Rule 9: the outcome is stored even if the caller has left.
func TestSettle_CallerLeft_StoresOutcome(t *testing.T) {
	g := guard(t, memstore.New(nil), nil)
	ctx, hangUp := context.WithCancel(t.Context())
	res, err := g.Run(ctx, ann("k"), func(context.Context, *semel.Execution) (store.Outcome, error) {
		hangUp()
		return store.Outcome{Body: []byte("done")}, nil
	})
	wantBody(t, res, err, "done", false)
	res, err = g.Run(t.Context(), ann("k"), never(t))
	wantBody(t, res, err, "done", true)
}

func TestSettle_NoAnswer_IsSentAgain(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		st := memstore.New(nil)
		n := 0
		h := &hooks{Store: st}
		h.settle = func(ctx context.Context, l store.Lease, s store.Settlement) error {
			switch n++; n {
			case 1:
				return errBoom // the request was lost
			case 2:
				if err := st.Settle(ctx, l, s); err != nil {
					t.Error(err)
				}
				return errBoom // the reply was lost
			}
			return st.Settle(ctx, l, s)
		}
		g := guard(t, h, nil)
		res, err := g.Run(t.Context(), ann("k"), answer("kept"))
		wantBody(t, res, err, "kept", false)
		if n != 3 {
			t.Errorf("%d requests, want 3", n)
		}
	})
}

// Rule 9: if the outcome cannot be stored, the caller gets the outcome together with
// ErrOutcomeNotStored, and the lease holds until it expires.
func TestSettle_StoreDown_CallerGetsOutcome(t *testing.T) {
	for policy, next := range map[semel.Policy]error{semel.Retry: nil, semel.Park: semel.ErrParked} {
		synctest.Test(t, func(t *testing.T) {
			st := memstore.New(nil)
			h := &hooks{Store: st, settle: func(context.Context, store.Lease, store.Settlement) error { return errBoom }}
			g := guard(t, h, &semel.Options{OnDoubt: policy})
			start := time.Now()
			got, err := semel.Do(t.Context(), g, ann("k"), func(context.Context, *semel.Execution) (int, error) { return 7, nil })
			wantErr(t, err, semel.ErrOutcomeNotStored)
			if got != 7 || time.Since(start) < 9*time.Second {
				t.Errorf("got %d after %v, want 7 after the SettleTimeout of 10 s", got, time.Since(start))
			}
			_, err = g.Run(t.Context(), ann("k"), never(t))
			wantErr(t, err, semel.ErrInProgress)
			time.Sleep(30 * time.Second)
			h.settle = nil
			if _, err = g.Run(t.Context(), ann("k"), answer("again")); !errors.Is(err, next) {
				t.Errorf("%v: after the lease the call got %v, want %v", policy, err, next)
			}
		})
	}
}
