package semel_test

import (
	"context"
	"errors"
	"iter"
	"testing"
	"testing/synctest"
	"time"

	"github.com/semel-go/semel"
	"github.com/semel-go/semel/driver"
	"github.com/semel-go/semel/store"
	"github.com/semel-go/semel/store/memstore"
)

// A step after the end of its call is refused, and ends nothing else.
func TestStep_AfterComplete_HandlerGoesOn(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		g := guard(t, memstore.New(nil), nil)
		_, err := g.Run(t.Context(), ann("k"), func(ctx context.Context, x *semel.Execution) (store.Outcome, error) {
			if err := driver.Complete(ctx, x, store.Outcome{Code: 200}); err != nil {
				t.Error(err)
			}
			time.Sleep(time.Minute)
			if ctx.Err() != nil {
				t.Error("before the step: ", ctx.Err())
			}
			if _, err := g.Run(ctx, x.Step("late"), answer("x")); !errors.Is(err, semel.ErrLeaseLost) {
				t.Errorf("the step: error %v, want ErrLeaseLost", err)
			}
			if ctx.Err() != nil {
				t.Errorf("the context of the completed handler ended: %v", context.Cause(ctx))
			}
			return store.Outcome{Code: 200}, nil
		})
		if err != nil {
			t.Error(err)
		}
	})
}

// cancelsList is a store whose caller leaves at the end of the list.
type cancelsList struct {
	*hooks
	mem    *memstore.Store
	cancel func()
}

func (c *cancelsList) Unwrap() store.Store { return nil }

func (c *cancelsList) List(ctx context.Context, f store.Filter) iter.Seq2[store.Found, error] {
	return func(yield func(store.Found, error) bool) {
		for fd, err := range c.mem.List(ctx, f) {
			if !yield(fd, err) {
				return
			}
		}
		c.cancel()
		yield(store.Found{}, ctx.Err())
	}
}

func TestReconcile_CancelledDuringList_TouchesNoRecord(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		mem := memstore.New(nil)
		h := &hooks{Store: mem}
		swaps := 0
		h.swap = func(ctx context.Context, seen store.Seen, p store.Proposal) (store.Found, error) {
			if ctx.Err() != nil {
				return store.Found{}, ctx.Err()
			}
			swaps++
			return mem.Swap(ctx, seen, p)
		}
		ctx, cancel := context.WithCancel(t.Context())
		st := &cancelsList{h, mem, cancel}
		g := parking(t, st, reconcilerOf(semel.Happened(nil), nil))
		_, _ = g.Run(t.Context(), ann("k"), fail(errBoom))
		before := wantState(t, g, "k", store.Unknown)
		if n, err := g.Reconcile(ctx, pay, 10); n != 0 || !errors.Is(err, context.Canceled) {
			t.Errorf("%d, error %v; want 0 and Canceled", n, err)
		}
		time.Sleep(10 * time.Second)
		after := wantState(t, g, "k", store.Unknown)
		if swaps > 0 || after.Fence != before.Fence {
			t.Errorf("%d swaps, fence %d then %d", swaps, before.Fence, after.Fence)
		}
	})
}
