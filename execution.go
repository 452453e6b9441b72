package semel

import (
	"context"
	"encoding/hex"
	"errors"
	"fmt"
	"sync/atomic"
	"time"

	"github.com/semel-go/semel/internal/protocol"
	"github.com/semel-go/semel/internal/txevents"
	"github.com/semel-go/semel/store"
)

// Handler does the work of a call. Its context ends with the cause ErrLeaseLost
// shortly before another process may take the call over. The handler must not
// change the Header and Body of the outcome after it has returned them.
type Handler func(ctx context.Context, x *Execution) (store.Outcome, error)

// Execution is one run of a handler. Only Semel makes one; nil and copies are
// invalid. Safe for concurrent use.
type Execution struct {
	guard       *Guard
	policy      Policy
	key         store.Key // the lease's, or that of a step
	lease       store.Lease
	attempt     int
	fingerprint string // the sum
	started     instant
	created     time.Time // of the record, by the store's clock
	claimed     time.Time // of the claim, by the store's clock; zero in a transaction
	lastError   string    // of the record when it was claimed

	renewal     *renewal    // nil: there is no lease to renew, as in a transaction
	mayComplete bool        // Complete may store the outcome early, because it will be kept
	reconciling bool        // the run is of Options.Reconcile, not of a handler
	beginsLife  bool        // the claim began a life of the key: see beganLife
	interrupted bool        // the run is of a saga, and took over an operator's claim
	stepped     atomic.Bool // the handler has asked for a step
	completed   atomic.Uint32

	journal   *journal
	own       journal       // unless the run is of a step
	step      string        // the name within the call; empty: the run is of the call itself
	outer     *Execution    // of a step: the step whose function runs it; nil: none
	inTx      bool          // of a step: it runs in a transaction
	txJournal store.Journal // in a transaction: where earlier attempts may have recorded steps
}

// The values of Execution.completed.
const (
	notCompleted uint32 = iota
	completing
	completed
)

func (g *Guard) newExecution(r *store.Record, started instant) *Execution {
	x := &Execution{
		guard: g, policy: r.Policy, key: r.Key, lease: r.Lease(), attempt: r.Attempt, fingerprint: r.Fingerprint.Sum, started: started,
		created: r.Created, lastError: r.LastError, beginsLife: beganLife(r), interrupted: protocol.DecisionInterrupted(r.Key, r.FormerOwners),
	}
	x.own.x, x.journal = x, &x.own
	return x
}

// child is the run of a step, which the Guard g runs.
func (x *Execution) child(ctx context.Context, g *Guard, step string) *Execution {
	c := &Execution{
		guard: g, policy: x.policy, key: x.stepKey(step), lease: x.lease, attempt: x.attempt, started: now(), journal: x.journal, step: step,
	}
	if outer, ok := FromContext(ctx); ok && outer.journal == x.journal && outer.step != "" {
		c.outer = outer
	}
	return c
}

// stepKey is the key of a step's run. The name is the one within the call.
func (x *Execution) stepKey(step string) store.Key {
	key := x.lease.Key
	key.Operation += "#" + step
	return key
}

// isIn reports whether x is the run of the step outer, or of a step in it. False for nil.
func (x *Execution) isIn(outer *Execution) bool {
	for ; x != nil; x = x.outer {
		if x == outer {
			return true
		}
	}
	return false
}

// isLaterRunOf reports whether x is a later run of the step that earlier was a run of. False for
// nil.
func (x *Execution) isLaterRunOf(earlier *Execution) bool {
	return x != nil && earlier != nil && x != earlier && x.step == earlier.step
}

// outermostTxStep is the run of the step that began the transaction which x is in; nil if x
// is in none.
func (x *Execution) outermostTxStep() (began *Execution) {
	for ; x != nil; x = x.outer {
		if x.inTx {
			began = x
		}
	}
	return began
}

// Operation is the operation of the call; in a step, "#" and its name follow.
func (x *Execution) Operation() string { return x.key.Operation }

// Tenant is the tenant of the call; empty if the call's Tenant is Shared. With
// Options.HashKeys it is the hash of the tenant, in each run and for a reconciler.
func (x *Execution) Tenant() string { return x.key.Tenant }

// Key is the idempotency key of the call. With Options.HashKeys it is the hash of the
// key, in each run and for a reconciler.
func (x *Execution) Key() string { return x.key.Value }

// Policy is what happens to this call in case of doubt.
func (x *Execution) Policy() Policy { return x.policy }

// Fence is the fencing token. It grows each time the key is claimed, so a
// downstream system that remembers the highest token can refuse a worker that
// lost its lease. 0 in a run without a record (Options.UnprotectedOnOutage).
func (x *Execution) Fence() uint64 { return x.lease.Fence }

// Attempt is 1 in the first run of the handler. An attempt that crashed counts;
// an attempt that returned NoEffect does not.
func (x *Execution) Attempt() int { return x.attempt }

// Fingerprint is the hash of the call's payload in hexadecimal. Empty for
// NoPayload and in a run without a record.
func (x *Execution) Fingerprint() string { return hex.EncodeToString([]byte(x.fingerprint)) }

// DownstreamKey makes an idempotency key for a call to another system: a UUID
// (version 8) made of the operation, tenant and key of the call, and of the
// given name. It is the same in every attempt and for a reconciler. Use another
// name for each downstream call. If the key is used again after its Retention,
// the downstream keys are the same again. A rerun (Options.Rerun) has others.
// With Options.HashKeys it is made of the hashes of tenant and key.
//
// A step has keys of its own. Outside of the step, StepDownstreamKey returns them.
func (x *Execution) DownstreamKey(name string) string { return x.key.Downstream(name) }

// StepDownstreamKey is the DownstreamKey of that name which a step of the run has. A
// reconciler asks another system by it what a step has done: it gets the Execution of the
// call, and not that of the step. The step need not have run. A step "inner" of a step
// "outer" is "outer#inner" here.
func (x *Execution) StepDownstreamKey(step, name string) string {
	if x.step != "" {
		step = x.step + "#" + step
	}
	return x.stepKey(step).Downstream(name)
}

// Step makes a recovery point: a call to run by Do with the same Guard, or with a
// store's Atomic. A step that has ended with a result or a *Failure is recorded
// with the call, and does not run again when the handler does: Do returns what is
// recorded. If its function ran and nothing is recorded, the step is in doubt, and
// so is its call: under Retry it runs again. A step lives as long as the record of
// its call. The store must be a store.Journal.
//
// The name is unique within the call, 1 to 255 bytes without '#'. The Call has
// NoPayload; set its Payload to be told by ErrMismatch that another attempt made
// the step with another one. In a transaction of Atomic, steps are savepoints.
func (x *Execution) Step(name string) Call {
	x.stepped.Store(true)
	return newStep(x, name)
}

func (x *Execution) failure(reason, cause error) *Error {
	return &Error{Reason: reason, Operation: x.key.Operation, Cause: cause}
}

// encode makes an outcome of a result, with the Guard's first codec.
func (x *Execution) encode(v any) (store.Outcome, error) { return encode(x.guard.options.Codecs[0], v) }

// complete stores the outcome before the handler returns: see driver.Complete.
func (x *Execution) complete(ctx context.Context, o store.Outcome) error {
	if !x.mayComplete {
		return fmt.Errorf("semel: Complete in this kind of run: %w", errors.ErrUnsupported)
	}
	if !x.completed.CompareAndSwap(notCompleted, completing) {
		return errors.New("semel: Complete was called twice")
	}
	err := x.guard.settle(ctx, x, x.guard.completion(o))
	switch {
	case err == nil:
		x.completed.Store(completed)
		x.journal.close()
		x.guard.release(x)
		return nil
	case errors.Is(err, store.ErrLeaseLost):
		return x.failure(ErrLeaseLost, err)
	}
	return x.failure(ErrOutcomeNotStored, err)
}

func (x *Execution) isCompleted() bool { return x.completed.Load() == completed }

type executionKey struct{}

// handlerContext is the context of the handler. It ends with the caller's
// context, with the run, or when the lease may be lost.
func (x *Execution) handlerContext(ctx context.Context) (context.Context, context.CancelCauseFunc) {
	return context.WithCancelCause(context.WithValue(txevents.Without(ctx), executionKey{}, x))
}

// FromContext finds the run that a context belongs to. It is for handlers that do
// not get the Execution as an argument, such as an http.Handler.
func FromContext(ctx context.Context) (*Execution, bool) {
	x, ok := ctx.Value(executionKey{}).(*Execution)
	return x, ok
}
