// Package driver has the functions of Semel that only authors of stores, of HTTP
// middleware and of message consumers need. Users of Semel need package semel.
//
// A store that runs calls inside its transactions implements store.Tx and calls
// RunIn for one call, or makes TxCalls for many calls in one transaction. A
// handler of HTTP requests that streams its answer calls Complete before the
// first byte.
package driver

import (
	"context"
	"time"

	"github.com/semel-go/semel"
	"github.com/semel-go/semel/internal/bridge"
	"github.com/semel-go/semel/internal/handlererr"
	"github.com/semel-go/semel/internal/leaseend"
	"github.com/semel-go/semel/internal/names"
	"github.com/semel-go/semel/internal/txevents"
	"github.com/semel-go/semel/store"
)

// guardMethods are the methods of a *semel.Guard that only this package can call.
type guardMethods interface {
	RunIn(ctx context.Context, tx store.Tx, call semel.Call, fn semel.Handler) (semel.Result, error)
	NewTxCall(call semel.Call) (txCall any, err error)
}

// executionMethods are the methods of a *semel.Execution that only this package
// can call.
type executionMethods interface {
	Encode(v any) (store.Outcome, error)
	Complete(ctx context.Context, o store.Outcome) error
	Completed() bool
	Committed()
}

// RunIn runs a call inside a transaction of a store. The record and the handler's
// writes commit together, so the effect happens exactly once.
//
// If the error is nil or a *semel.Failure, commit: the record keeps the result or
// the failure, and a failure's writes are undone. Otherwise roll back; the
// transaction contains nothing of the call any more, even if it commits all the
// same. RunIn never waits, because the caller may hold locks: a duplicate of a
// call in progress fails at once with semel.ErrInProgress. After the commit call
// Committed.
func RunIn(ctx context.Context, g *semel.Guard, tx store.Tx, call semel.Call, fn semel.Handler) (semel.Result, error) {
	return bridge.Guard(g).(guardMethods).RunIn(ctx, tx, call, fn)
}

// TxEvents keeps the events of a call in a transaction that the store commits, so that
// they say what became of it. The zero value is ready for use. Not safe for concurrent use.
type TxEvents struct{ buffer txevents.Buffer }

// Context returns a context for RunIn and TxCall, so that e keeps the events of the call. The
// handler's own calls report theirs at once.
func (e *TxEvents) Context(ctx context.Context) context.Context { return txevents.With(ctx, &e.buffer) }

// Discard drops the events of a transaction that was rolled back and runs again.
func (e *TxEvents) Discard() { e.buffer.Discard() }

// End reports the events of a call that has ended with err, and no more than one that
// ends the call; ended is false if there was none. If err is neither nil nor a
// *semel.Failure, a result that was to be kept is reported as semel.EventNotStored, and a
// replay, unless err is semel.ErrNotKept, as semel.EventRefused.
func (e *TxEvents) End(err error) (ended bool) { return e.buffer.End(err) }

// Committed tells Semel that the transaction of a RunIn has committed, and with it the
// step whose run is x, so that a second use of the step's name in the same run of its call
// is semel.ErrInvalid. Without it, a second use looks whether the step is recorded. If x is
// not the run of a step, or is nil because no handler ran, nothing happens.
func Committed(x *semel.Execution) {
	if x == nil {
		return
	}
	bridge.Execution(x).(executionMethods).Committed()
}

// TxCall is one call inside a transaction, taken step by step, so that a store can
// look for many calls in one statement, and run them in one handler. Unlike RunIn
// it makes no savepoints: if Claim or Settle returns an error that is not a
// *semel.Failure, undo the writes of the call. Not safe for concurrent use.
type TxCall interface {
	// Key is the key that Claim asks the store for.
	Key() store.Key
	// Proposal returns the claim that Claim sends. A store can insert the
	// proposals of many calls in one statement and then call Inserted. If
	// canInsert is false, call Claim.
	Proposal(ctx context.Context) (p store.Proposal, canInsert bool)
	// Inserted replaces Claim if the store has inserted the record of Proposal
	// with the given fence in the transaction. Proposal must have reported
	// canInsert.
	Inserted(tx store.Tx, fence uint64) *semel.Execution
	// Claim claims the key. If x is nil, the handler must not run: the call ends
	// with res and err.
	Claim(ctx context.Context, tx store.Tx) (x *semel.Execution, res semel.Result, err error)
	// Settle records what the handler returned.
	Settle(ctx context.Context, o store.Outcome, err error) (semel.Result, error)
	// Refuse reports that the call has ended with err without a claim.
	Refuse(ctx context.Context, err error)
}

// NewTxCall prepares a call. The error is semel.ErrInvalid if the call is invalid.
func NewTxCall(g *semel.Guard, call semel.Call) (TxCall, error) {
	t, err := bridge.Guard(g).(guardMethods).NewTxCall(call)
	if err != nil {
		return nil, err
	}
	return t.(TxCall), nil
}

// LeaseOptions returns the names of the options that are not zero, but are about the
// leases and the doubt that a call in a transaction does not have.
func LeaseOptions(o *semel.Options) (names []string) {
	if o == nil {
		return nil
	}
	for _, f := range []struct {
		name string
		set  bool
	}{
		{"OnDoubt", o.OnDoubt != semel.Retry}, {"Reconcile", o.Reconcile != nil}, {"Lease", o.Lease != 0},
		{"Reservation", o.Reservation != 0}, {"Backoff", o.Backoff != nil}, {"MaxWaiters", o.MaxWaiters != 0},
		{"SettleTimeout", o.SettleTimeout != 0}, {"Rerun", o.Rerun}, {"UnprotectedOnOutage", o.UnprotectedOnOutage},
	} {
		if f.set {
			names = append(names, f.name)
		}
	}
	return names
}

// LeaseUntil returns a context for calls of a process that will be stopped at a known
// time, such as an invocation of AWS Lambda. Their leases are over at the time end, so that
// the keys are free when the process has been stopped. If a claim has to be sent again,
// because the store did not answer, its lease can last up to Options.StoreTimeout longer.
// The context and those of the handlers have end as their deadline, because another
// process may take over then.
func LeaseUntil(ctx context.Context, end time.Time) (context.Context, context.CancelFunc) {
	return context.WithDeadline(leaseend.With(ctx, end), end)
}

// Encode makes an outcome of a result, with the Guard's first codec, as semel.Do
// does.
func Encode(x *semel.Execution, v any) (store.Outcome, error) {
	return bridge.Execution(x).(executionMethods).Encode(v)
}

// Complete stores the outcome before the handler returns, so that an HTTP handler
// can stream its answer afterwards. If it succeeds, the outcome that the handler
// returns is not stored. Only the first call of Complete can succeed.
//
// semel.ErrLeaseLost: another process may have taken over, so do not answer.
// semel.ErrOutcomeNotStored: a duplicate may run again. errors.ErrUnsupported: the
// run is in a transaction, which commits later, or has no record.
func Complete(ctx context.Context, x *semel.Execution, o store.Outcome) error {
	return bridge.Execution(x).(executionMethods).Complete(ctx, o)
}

// Completed reports whether Complete has stored an outcome.
func Completed(x *semel.Execution) bool {
	return bridge.Execution(x).(executionMethods).Completed()
}

// ReadableError returns err or, if a method of it panics, another error that says so.
// A store, middleware or a consumer that reads the error of a user's function makes it
// readable first: a handler has had its effect, and a panic could end the process.
func ReadableError(err error) error { return handlererr.Readable(err) }

// ErrorText is what a record keeps of an error: its first 500 bytes, in valid UTF-8 and
// without NUL. A store that records the error of a handler by itself, and not by a
// settlement of a Guard, records this text.
func ErrorText(err error) string { return handlererr.Text(err) }

// IsNoEffect reports whether a handler's error is marked by semel.NoEffect. A joined
// error is marked only if each of its parts is.
func IsNoEffect(err error) bool { return handlererr.IsNoEffect(err) }

// maxRetryHint is the longest RetryHint for a run in progress.
const maxRetryHint = 30 * time.Second

// RetryHint is when the client of a refused call should ask again. For a run in progress it
// is half the time that the run has taken so far, from one second to 30. The rest of the
// lease says little about the end of the run, because the lease is renewed while the run
// goes on. Otherwise it is e.RetryAfter, which is zero if no time is known.
func RetryHint(e *semel.Error) time.Duration {
	if e.Running <= 0 {
		return e.RetryAfter
	}
	return min(max(e.Running/2, time.Second), maxRetryHint)
}

// CheckOperation returns an error if no call can have the operation, so that a
// program with a wrong name fails when it starts.
func CheckOperation(operation string) error { return names.CheckOperation(operation) }

// CheckPayload returns an error if a call with the payload is refused as invalid, such as
// semel.JSON of a document with a member twice. An adapter that finds documents of any form
// can compare the bytes of such a document instead.
func CheckPayload(p semel.Payload) error { return bridge.CheckPayload(p) }

// CheckTenant is CheckOperation for a tenant. semel.Shared is valid.
func CheckTenant(tenant string) error {
	if tenant == semel.Shared {
		return nil
	}
	return names.Check("tenant", tenant)
}
