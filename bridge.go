package semel

import (
	"context"

	"github.com/semel-go/semel/internal/bridge"
	"github.com/semel-go/semel/store"
)

// The types of this file are the methods that package driver calls. They are not
// methods of Guard and Execution, so that users do not meet them.

func init() {
	bridge.Guard = func(guard any) any { return driverGuard{guard.(*Guard)} }
	bridge.Execution = func(execution any) any { return driverExecution{execution.(*Execution)} }
}

type driverGuard struct{ guard *Guard }

func (d driverGuard) RunIn(ctx context.Context, tx store.Tx, call Call, fn Handler) (Result, error) {
	return d.guard.runIn(ctx, tx, call, fn)
}

// NewTxCall returns a driver.TxCall as any.
func (d driverGuard) NewTxCall(call Call) (any, error) {
	t := &driverTxCall{}
	if err := t.call.init(d.guard, call); err != nil {
		return nil, err
	}
	return t, nil
}

type driverExecution struct{ x *Execution }

func (d driverExecution) Encode(v any) (store.Outcome, error) { return d.x.encode(v) }

func (d driverExecution) Complete(ctx context.Context, o store.Outcome) error {
	return d.x.complete(ctx, o)
}

func (d driverExecution) Completed() bool { return d.x.isCompleted() }

// driverTxCall implements driver.TxCall, which has the documentation.
type driverTxCall struct {
	call   txCall
	cancel context.CancelFunc // ends the handler's context; nil: nobody asked for one
}

func (d *driverTxCall) Key() store.Key { return d.call.key }

func (d *driverTxCall) Proposal() (p store.Proposal, canInsert bool) {
	p = d.call.firstClaim()
	d.call.owner = p.Owner
	return p, !d.call.isRedeemed()
}

func (d *driverTxCall) Inserted(tx store.Tx, fence uint64) *Execution {
	t := &d.call
	t.tx = tx
	t.x = &Execution{
		guard: t.guard, policy: t.pendingCall.call.Policy, lease: store.Lease{Key: t.key, Owner: t.owner, Fence: fence},
		attempt: 1, fingerprint: t.pendingCall.call.Fingerprint.Sum, started: now(),
	}
	return t.x
}

func (d *driverTxCall) Claim(ctx context.Context, tx store.Tx) (x *Execution, res Result, err error) {
	t := &d.call
	t.tx = tx
	if t.x, err = t.claim(ctx); t.x == nil {
		res, err = t.end(err)
	}
	return t.x, res, err
}

func (d *driverTxCall) HandlerContext(ctx context.Context) (context.Context, context.CancelFunc) {
	handlerCtx, cancel := d.call.x.handlerContext(ctx)
	d.cancel = func() { cancel(nil) }
	return handlerCtx, d.cancel
}

func (d *driverTxCall) Settle(ctx context.Context, o store.Outcome, err error) (Result, error) {
	if d.cancel != nil {
		defer d.cancel()
	}
	return d.call.end(d.call.settle(ctx, d.call.x, o, err))
}
