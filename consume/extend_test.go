package consume_test

import (
	"context"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/semel-go/semel"
	"github.com/semel-go/semel/consume"
)

// An Extend that ignores even its context is waited for by no other, and not by
// the end of Serve.
func TestServe_ExtendNeverReturns_Ends(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := newSource(keyed("a"), keyed("b"))
		s.info.AckWait = 30 * time.Second
		var n atomic.Int64
		s.extend = func() error {
			if n.Add(1) == 1 {
				time.Sleep(24 * time.Hour)
			}
			return nil
		}
		r := serve(t, newConsumer(t, newGuard(t, nil, nil), func(context.Context, *semel.Execution, *consume.Message) error {
			time.Sleep(65 * time.Second)
			return nil
		}, consume.Options{}), s)
		pass(70 * time.Second)
		if n.Load() != 7 {
			t.Errorf("extended %d times, want 6 for the one, and 1 for that which hangs", n.Load())
		}
		if took := r.end(); took > time.Minute || r.err != nil {
			t.Errorf("Serve ended after %v with %v", took, r.err)
		}
		pass(25 * time.Hour)
	})
}
