package pgstore

import (
	"context"
	"testing"
	"time"

	"github.com/semel-go/semel"
)

// A step commits in a transaction of its own, on connections whose warnings the store does
// not see. While commits wait for a standby, neither the step nor its replay is done.
func TestStandbyAway_StepInTransaction_NotAcknowledged(t *testing.T) {
	t.Parallel()
	srv := newStandbyServer(t)
	s, err := New(t.Context(), pool(t, srv.URL()), nil)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = s.Close() })
	p := newShop(t, s, nil)
	err = semel.Once(t.Context(), leased(t, p.s, nil), call("k"), func(ctx context.Context, x *semel.Execution) error {
		srv.standby(t, "nobody")
		cancels, stop := context.WithCancel(ctx)
		defer stop()
		go srv.cancelWaits(cancels)
		for range 2 {
			short, cancel := context.WithTimeout(ctx, time.Second)
			if _, err := Do(short, p.a, x.Step("pay"), p.pay("k", nil)); err == nil {
				t.Error("the step is done without the standby")
			}
			cancel()
		}
		stop()
		srv.standby(t, "")
		_, err := Do(ctx, p.a, x.Step("pay"), p.pay("k", nil))
		return err
	})
	if err != nil {
		t.Errorf("with the standby: %v", err)
	}
	p.want(t, "k")
}
