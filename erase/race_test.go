package erase_test

import (
	"context"
	"errors"
	"sync"
	"sync/atomic"
	"testing"

	"github.com/semel-go/semel"
	"github.com/semel-go/semel/erase"
	"github.com/semel-go/semel/store"
	"github.com/semel-go/semel/store/memstore"
)

// While calls of the tenant go on, an erasure never lets two handlers of one key run at
// the same time, and each run has a higher fencing token than the run before.
func TestRun_CallsGoOn_OneRunAtATimeAndFencesGrow(t *testing.T) {
	t.Parallel()
	st := memstore.New(nil)
	const keys, callers, enough = 3, 4, 100
	var running [keys]atomic.Int32
	var last [keys]atomic.Uint64
	stop := make(chan struct{})
	var calls sync.WaitGroup
	for n := range callers {
		g := guard(t, st, nil) // a process of its own
		calls.Go(func() {
			for i := 0; ; i++ {
				select {
				case <-stop:
					return
				default:
				}
				k := (i + n) % keys
				_, _ = g.Run(t.Context(), call("ann", string(rune('a'+k))), func(_ context.Context, x *semel.Execution) (store.Outcome, error) {
					if now := running[k].Add(1); now > 1 {
						t.Errorf("%d handlers of one key run at the same time", now)
					}
					defer running[k].Add(-1)
					if before := last[k].Swap(x.Fence()); before >= x.Fence() {
						t.Errorf("the fencing token was %d, and is %d", before, x.Fence())
					}
					switch i % 3 {
					case 0:
						return store.Outcome{}, semel.Final(errors.New("declined"))
					case 1:
						return store.Outcome{}, errors.New("again")
					}
					return store.Outcome{Body: []byte("done")}, nil
				})
			}
		})
	}
	for erased := 0; erased < enough; {
		r, err := erase.Run(t.Context(), st, erase.Scope{Tenant: "ann"}, nil)
		if err != nil {
			t.Error(err)
			break
		}
		erased += r.Erased
	}
	close(stop)
	calls.Wait()
	mustRun(t, st, erase.Scope{Tenant: "ann"}, nil)
	if left := states(t, st, "ann"); len(left) > 0 {
		t.Errorf("after the last call %v are left", left)
	}
}
