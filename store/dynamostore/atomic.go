package dynamostore

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"strings"
	"time"

	"github.com/aws/aws-sdk-go-v2/service/dynamodb/types"

	"github.com/semel-go/semel"
	"github.com/semel-go/semel/driver"
	"github.com/semel-go/semel/store"
)

// Atomic runs calls so that the record and the handler's writes are one
// TransactWriteItems: their effect happens exactly once. It is a semel.Runner, and
// safe for concurrent use. Make it with [NewAtomic].
type Atomic struct {
	store        *Store
	guard        *semel.Guard
	storeTimeout time.Duration
}

var _ semel.Runner = (*Atomic)(nil)

// NewAtomic makes an Atomic of the store. Nil options mean the defaults. Options for
// leases, attempts and doubt must be zero, because a transaction that fails has no
// effect.
func NewAtomic(st *Store, o *semel.Options) (*Atomic, error) {
	if st == nil {
		return nil, errors.New("dynamostore: NewAtomic: the store is nil; pass one that New returned")
	}
	wrong := driver.LeaseOptions(o)
	if o != nil && o.MaxAttempts != 0 {
		wrong = append(wrong, "MaxAttempts")
	}
	if len(wrong) > 0 {
		return nil, fmt.Errorf("dynamostore: NewAtomic: semel.Options.%s must be zero: a transaction has no lease and no doubt", strings.Join(wrong, ", "))
	}
	g, err := semel.New(st, o)
	if err != nil {
		return nil, err
	}
	timeout := defaultStoreTimeout
	if o != nil && o.StoreTimeout != 0 {
		timeout = o.StoreTimeout
	}
	return &Atomic{st, g, timeout}, nil
}

// defaultStoreTimeout is the default of semel.Options.StoreTimeout.
const defaultStoreTimeout = 5 * time.Second

// Retention is how long outcomes are kept.
func (a *Atomic) Retention() time.Duration { return a.guard.Retention() }

// StoreKey is the key under which the store has the record of a call: semel.Guard.StoreKey.
func (a *Atomic) StoreKey(call semel.Call) store.Key { return a.guard.StoreKey(call) }

// Ping returns nil if the store answers.
func (a *Atomic) Ping(ctx context.Context) error { return a.guard.Ping(ctx) }

// Run runs fn for a call, with a transaction that fn gets from [TxFrom] and adds its
// writes to. Nothing is sent before fn returns. If fn returns nil, Run writes the
// record and fn's writes together. If fn returns a *semel.Failure, Run records the
// failure without fn's writes. On any other error nothing is written.
//
// No lock keeps two calls with one key apart: both may run fn, and the transaction
// of one is refused. Run then tries again, finds the other's record and replays it. So
// fn must have no effect besides [Tx.Add]. If DynamoDB refuses a write of fn, the error
// is [ErrWriteRefused], and not semel.ErrUnavailable. A Run inside fn, with fn's ctx,
// joins the transaction, as In does.
func (a *Atomic) Run(ctx context.Context, call semel.Call, fn semel.Handler) (res semel.Result, err error) {
	if tx, ok := a.store.openTx(ctx); ok {
		return a.In(tx).Run(ctx, call, fn)
	}
	var events driver.TxEvents
	defer func() { events.End(err) }()
	for try, pause := 1, firstRetry; ; try, pause = try+1, min(2*pause, lastRetry) {
		events.Discard()
		tx := a.store.NewTx()
		tx.timeout = a.storeTimeout
		var running *semel.Execution
		res, err = a.In(tx).Run(events.Context(ctx), call, func(ctx context.Context, x *semel.Execution) (store.Outcome, error) {
			running = x
			return fn(ctx, x)
		})
		if _, kept := errors.AsType[*semel.Failure](err); err != nil && !kept {
			return res, err
		}
		refused := tx.Commit(ctx)
		if refused == nil {
			driver.Committed(running)
			return res, err
		}
		// If the transaction is in progress, the next one meets it or finds its record.
		_, inProgress := errors.AsType[*types.TransactionInProgressException](refused)
		if (inProgress || errors.Is(refused, ErrConflict)) && try < maxTries && sleep(ctx, pause/2+rand.N(pause)) {
			continue
		}
		if errors.Is(refused, ErrWriteRefused) || errors.Is(refused, store.ErrTooLarge) || isValidation(refused) {
			return semel.Result{}, refused // fn's writes are the cause, and not the store
		}
		reason := semel.ErrUnavailable
		if ctx.Err() != nil {
			reason = semel.ErrCanceled
		}
		return semel.Result{}, &semel.Error{Reason: reason, Operation: call.Operation, Cause: refused}
	}
}

// The pauses before a transaction is tried again that met another one, and how often
// it is tried.
const (
	firstRetry = 10 * time.Millisecond
	lastRetry  = 500 * time.Millisecond
	maxTries   = 12
)

// In runs calls in the caller's transaction, which the caller commits or drops. A
// handler that fails leaves nothing in it. Nothing is recorded until the caller
// commits. The Runner is not safe for concurrent use.
func (a *Atomic) In(tx *Tx) semel.Runner { return inTx{a, tx} }

type inTx struct {
	atomic *Atomic
	tx     *Tx
}

// Run implements semel.Runner.
func (r inTx) Run(ctx context.Context, call semel.Call, fn semel.Handler) (semel.Result, error) {
	return driver.RunIn(ctx, r.atomic.guard, r.tx, call, func(ctx context.Context, x *semel.Execution) (store.Outcome, error) {
		tx := &Tx{txState: r.tx.txState, handlers: true}
		defer tx.end()
		return fn(context.WithValue(ctx, txKey{}, tx), x)
	})
}

type txKey struct{}

// openTx returns the open transaction of this store whose handler uses ctx.
func (s *Store) openTx(ctx context.Context) (*Tx, bool) {
	tx, ok := TxFrom(ctx)
	if !ok || tx.store != s {
		return nil, false
	}
	tx.mu.Lock()
	defer tx.mu.Unlock()
	return tx, !tx.ended && !tx.returned
}

// end refuses writes of a handler that has returned.
func (t *Tx) end() {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.returned = true
}

// TxFrom returns the transaction of the Atomic whose handler got ctx, for
// http.Handlers and message handlers. Outside of a handler ok is false.
func TxFrom(ctx context.Context) (tx *Tx, ok bool) {
	tx, ok = ctx.Value(txKey{}).(*Tx)
	return tx, ok
}

// Do is semel.Do with a handler that gets the transaction. See [Atomic.Run].
func Do[T any](ctx context.Context, a *Atomic, call semel.Call, fn func(ctx context.Context, x *semel.Execution, tx *Tx) (T, error)) (T, error) {
	return semel.Do(ctx, a, call, func(ctx context.Context, x *semel.Execution) (T, error) {
		tx, _ := TxFrom(ctx)
		return fn(ctx, x, tx)
	})
}

// Once is Do for work without a result.
func Once(ctx context.Context, a *Atomic, call semel.Call, fn func(ctx context.Context, x *semel.Execution, tx *Tx) error) error {
	return semel.Once(ctx, a, call, func(ctx context.Context, x *semel.Execution) error {
		tx, _ := TxFrom(ctx)
		return fn(ctx, x, tx)
	})
}
