package semel

import (
	"context"
	"errors"
	"maps"
	"strings"
	"time"

	"github.com/semel-go/semel/internal/bridge"
	"github.com/semel-go/semel/internal/handlererr"
	"github.com/semel-go/semel/internal/protocol"
	"github.com/semel-go/semel/store"
)

// This file has the methods and functions that packages driver, saga and outbox call. They
// are not methods of Guard and Execution, so that users do not meet them.

func init() {
	bridge.Guard = func(guard any) any { return driverGuard{guard.(*Guard)} }
	bridge.CheckPayload = func(payload any) error {
		p := payload.(Payload)
		return p.check()
	}
	bridge.Execution = func(execution any) any { return driverExecution{execution.(*Execution)} }
	bridge.RunningCall = func(ctx context.Context) (store.Key, bool) {
		x, ok := FromContext(ctx)
		if !ok {
			return store.Key{}, false
		}
		k := x.lease.Key
		k.Operation = strings.TrimSuffix(k.Operation, protocol.RerunSuffix) // the second key's record is soon gone
		return k, true
	}
}

type driverGuard struct{ guard *Guard }

func (d driverGuard) RunIn(ctx context.Context, tx store.Tx, call Call, fn Handler) (Result, error) {
	return d.guard.runIn(ctx, tx, call, fn)
}

// NewTxCall returns a driver.TxCall as any.
func (d driverGuard) NewTxCall(call Call) (any, error) {
	t := &driverTxCall{}
	if err := t.txCall.init(d.guard, call); err != nil {
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

func (d driverExecution) Committed() { d.x.journal.committed(d.x) }

// committed notes that the transaction of the step x has committed. A handler's own
// savepoint may have undone a step inside x, so the next use of that step's name reads the
// record.
func (j *journal) committed(x *Execution) {
	j.mu.Lock()
	defer j.mu.Unlock()
	for name, u := range j.uses {
		if u.state == stepUncommitted && u.x.isIn(x) {
			j.use(name, stepUse{state: stepUsed, step: u.step, outer: u.x.outer})
		}
	}
}

// driverTxCall implements driver.TxCall, which has the documentation.
type driverTxCall struct{ txCall txCall }

func (d *driverTxCall) Key() store.Key { return d.txCall.key }

func (d *driverTxCall) Proposal(ctx context.Context) (p store.Proposal, canInsert bool) {
	p = d.txCall.firstClaimIn(ctx)
	d.txCall.owner = p.Owner
	return p, !d.txCall.isRedeemed()
}

func (d *driverTxCall) Inserted(tx store.Tx, fence uint64) *Execution {
	t := &d.txCall
	t.tx = t.guard.options.Encryption.Tx(tx)
	t.x = t.execution(&store.Record{
		Key: t.key, Policy: t.storeCall.Policy, Owner: t.owner, Fence: fence, Attempt: 1, Fingerprint: t.storeCall.Fingerprint,
	})
	return t.x
}

func (d *driverTxCall) Claim(ctx context.Context, tx store.Tx) (x *Execution, res Result, err error) {
	t := &d.txCall
	t.tx = t.guard.options.Encryption.Tx(tx)
	if t.x, err = t.claimInTx(ctx); t.x == nil {
		res, err = t.finish(err)
	}
	return t.x, res, err
}

func (d *driverTxCall) Settle(ctx context.Context, o store.Outcome, err error) (Result, error) {
	return d.txCall.finish(d.txCall.settle(ctx, d.txCall.x, o, err))
}

func (d *driverTxCall) Refuse(ctx context.Context, err error) {
	c := &d.txCall.pendingCall
	c.guard.observe(ctx, Event{Kind: EventRefused, EndsCall: true, Policy: c.storeCall.Policy, Err: err}, c.key)
}

// The methods below are for package saga.

// Store is the Guard's store.
func (d driverGuard) Store() store.Store { return d.guard.store }

// Options are the Guard's options with their defaults.
func (d driverGuard) Options() Options { return d.guard.options }

// RunSaga runs a saga, or a part of it, as a call of its own. The error of fn says how
// the run ends: nil and a *Failure end the saga, handlererr.Pause lets it go on later, and
// handlererr.Stuck parks it. If created is not zero, the call is the one whose record was
// created then, and its payload is not compared. The end of ctx ends a wait for the
// claim, and not the context of fn.
func (d driverGuard) RunSaga(ctx context.Context, call Call, created time.Time, fn Handler) (Result, error) {
	g := d.guard
	call.Operation += protocol.SagaSuffix
	call.saga, call.reserved = true, created
	if err := g.check(&call); err != nil {
		return Result{}, err
	}
	c := g.newPendingCall(call)
	var a admission
	if err := c.admit(ctx, &a); err != nil || !a.claimed {
		return a.result, err
	}
	return g.execute(context.WithoutCancel(ctx), &a, fn, g.sagaSettlement)
}

// sagaSettlement decides how a run of a saga is settled.
func (g *Guard) sagaSettlement(x *Execution, o store.Outcome, err error) (store.Settlement, string, error) {
	if err == nil {
		return g.completion(o), EventExecuted, nil
	}
	s := store.Settlement{State: store.Released, Attempt: x.attempt, Error: errorText(err), Keep: protocol.UnfinishedSagaRetention}
	if stuck, ok := errors.AsType[*handlererr.Stuck](err); ok {
		s.State = store.Unknown
		return s, EventParked, x.failure(ErrParked, textOnly(stuck))
	}
	if pause, ok := errors.AsType[*handlererr.Pause](err); ok {
		s.Attempt = pause.Attempt
		if pause.NothingRecorded {
			s.Keep = 0
		}
		switch {
		case pause.NoAttempt:
			s.Error = x.lastError
		case pause.Err == nil:
			s.Error = ""
		}
		if pause.Err != nil {
			pause.Err = asCause(pause.Err)
		}
		return s, EventReleased, err
	}
	if f, ok := errors.AsType[*Failure](err); ok && f != nil {
		f = f.validUTF8()
		return g.failed(f), EventFailed, f
	}
	return s, EventReleased, err
}

// Fresh reports whether the claim of the run made the record, which then has no steps. It
// can be false for such a claim if an earlier fence was higher, and then the steps are read.
func (d driverExecution) Fresh() bool { return d.x.beginsLife }

// Interrupted reports whether the run is of a saga about which an operator's decision was
// interrupted.
func (d driverExecution) Interrupted() bool { return d.x.interrupted }

// Created is when the record of the run was created.
func (d driverExecution) Created() time.Time { return d.x.created }

// Now is the store's clock: the time of the claim, and how long the run has gone on by
// the local monotonic clock.
func (d driverExecution) Now() time.Time { return d.x.claimed.Add(now().since(d.x.started)) }

// Steps are the steps that the record has, by their names.
func (d driverExecution) Steps(ctx context.Context) (map[string]*store.Step, error) {
	j := d.x.journal
	j.mu.Lock()
	j.loaded = j.loaded || d.x.beginsLife // the record is new, so it has no steps
	j.mu.Unlock()
	if err := j.load(ctx, &runningStep{}); err != nil {
		return nil, err
	}
	j.mu.Lock()
	defer j.mu.Unlock()
	steps := make(map[string]*store.Step, len(j.recorded.byName))
	maps.Copy(steps, j.recorded.byName)
	return steps, nil
}

// RecordSize counts the steps that are recorded, the steps that run, and the steps named in
// upcoming. bytes is the sum of their sizes, without the results that are not recorded.
// reserved is how many more bytes the results of the running steps may need.
func (d driverExecution) RecordSize(upcoming []string) (count, bytes, reserved int) {
	j := d.x.journal
	j.mu.Lock()
	defer j.mu.Unlock()
	count, bytes, reserved = j.sizeWithout(&runningStep{}, countUncommitted)
	for _, name := range upcoming {
		if u := j.uses[name]; j.recorded.byName[name] == nil && u.state != stepRunning && u.step == nil {
			count, bytes = count+1, bytes+(&store.Step{Name: name}).Size()
		}
	}
	return count, bytes, reserved
}
