package sim

import (
	"context"
	"fmt"

	"github.com/semel-go/semel"
	"github.com/semel-go/semel/store"
)

// reconciler is Options.Reconcile: it asks the ledger, which answers for good.
func (w *world) reconciler(ctx context.Context, x *semel.Execution) (semel.Verdict, error) {
	c := ctx.Value(callKey{}).(*call)
	k := store.Key{Operation: x.Operation(), Tenant: x.Tenant(), Value: x.Key()}
	return w.asks(ctx, c.p, k, x.Fence(), x.Fence()/uint64(tick.Microseconds())%5 == 0)
}

// asks finds out what became of a parked call.
func (w *world) asks(ctx context.Context, p *process, k store.Key, fence uint64, fails bool) (semel.Verdict, error) {
	c, _ := ctx.Value(callKey{}).(*call)
	it := &item{kind: acts, c: c, key: k, fence: fence}
	it.apply = func() reply {
		var v semel.Verdict
		r, doubt := w.book.happened(k, fence)
		switch {
		case r != nil:
			v = semel.Happened(store.Outcome{Body: []byte("known " + r.name())})
			w.reach(reconciledYes)
		case fails || doubt:
			v = semel.FailedForGood(&semel.Failure{Code: fmt.Sprintf("no-%d", fence)})
			w.reach(reconciledFailed)
		default:
			v = semel.DidNotHappen()
			w.reach(reconciledNo)
		}
		w.note("the ledger was asked about "+k.Value, c.id, int64(fence))
		return reply{verdict: v}
	}
	r, err := p.ask(ctx, it)
	return r.verdict, err
}
