package sqlitestore

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"strings"
	"sync/atomic"
	"time"

	"github.com/semel-go/semel"
	"github.com/semel-go/semel/driver"
	"github.com/semel-go/semel/store"
)

// Atomic runs calls so that the record and the handler's writes to the file
// commit in one transaction: their effect happens exactly once. It is a
// semel.Runner, and safe for concurrent use. Make it with [NewAtomic].
type Atomic struct {
	s *Store
	g *semel.Guard
}

var _ semel.Runner = (*Atomic)(nil)

// NewAtomic makes an Atomic of the store. Nil options mean the defaults. Options
// for leases, attempts and doubt must be zero, because a transaction that fails
// has no effect.
func NewAtomic(st *Store, o *semel.Options) (*Atomic, error) {
	if st == nil {
		return nil, errors.New("sqlitestore: NewAtomic: the store is nil; pass one that Open returned")
	}
	wrong := driver.LeaseOptions(o)
	if o != nil && o.MaxAttempts != 0 {
		wrong = append(wrong, "MaxAttempts")
	}
	if len(wrong) > 0 {
		return nil, fmt.Errorf("sqlitestore: NewAtomic: semel.Options.%s must be zero: a transaction has no lease and no doubt", strings.Join(wrong, ", "))
	}
	g, err := semel.New(st, o)
	if err != nil {
		return nil, err
	}
	return &Atomic{st, g}, nil
}

// Run runs fn once for a call, in its own transaction, which holds SQLite's write
// lock while fn runs, for at most Options.MaxTx if fn gives its context to each
// statement (Tx.ExecContext, not Tx.Exec). Fn gets the transaction from [TxFrom]. A duplicate is replayed without a transaction; a duplicate that comes
// while the first call runs waits for it.
//
// If fn returns nil, Run commits the record and fn's writes. If fn returns a
// *semel.Failure, Run records the failure and rolls fn's writes back. On any other
// error it rolls all back. Fn must write to the file only through the
// transaction, and cannot commit it. If fn leaves PRAGMA query_only or locking_mode
// changed, Run closes the connection; another PRAGMA may hold for later calls. A Run
// inside fn, with fn's ctx, joins the transaction, as In does.
func (a *Atomic) Run(ctx context.Context, call semel.Call, fn semel.Handler) (res semel.Result, err error) {
	if tx, ok := a.s.openTx(ctx); ok {
		return a.In(tx).Run(ctx, call, fn)
	}
	handlerCtx, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	var events driver.TxEvents
	defer func() { events.End(err) }() // before handlerCtx ends, because it is the observer's context
	t := &runTx{s: a.s, handlerCtx: handlerCtx, cancel: cancel}
	defer t.rollback() // if fn panics
	var running *semel.Execution
	res, err = driver.RunIn(events.Context(handlerCtx), a.g, t, call, func(ctx context.Context, x *semel.Execution) (store.Outcome, error) {
		running = x
		return a.s.runWithTx(ctx, t.tx, x, fn)
	})
	if _, kept := errors.AsType[*semel.Failure](err); err != nil && !kept {
		t.rollback()
		return res, timedOut(handlerCtx, err) // with ErrNotKept the result holds the part that was kept
	}
	if cerr := t.commit(); cerr != nil {
		cause := timedOut(handlerCtx, explain("commit", cerr))
		if violated(cerr) {
			return semel.Result{}, cause // by what fn wrote: the store is not the reason
		}
		if inDoubt(code(cerr)) {
			cause = fmt.Errorf("%w: %w", semel.ErrInDoubt, cause)
		}
		reason := semel.ErrUnavailable
		if ctx.Err() != nil {
			reason = semel.ErrCanceled
		}
		return semel.Result{}, &semel.Error{Reason: reason, Operation: call.Operation, Cause: cause}
	}
	driver.Committed(running)
	return res, err
}

// timedOut adds to err that the transaction took too long, if it did.
func timedOut(handlerCtx context.Context, err error) error {
	if errors.Is(context.Cause(handlerCtx), ErrTxTimeout) && !errors.Is(err, ErrTxTimeout) {
		return fmt.Errorf("%w: %w", ErrTxTimeout, err)
	}
	return err
}

// Retention is how long outcomes are kept.
func (a *Atomic) Retention() time.Duration { return a.g.Retention() }

// StoreKey is the key under which the store has the record of a call: semel.Guard.StoreKey.
func (a *Atomic) StoreKey(call semel.Call) store.Key { return a.g.StoreKey(call) }

// Ping returns nil if the store answers.
func (a *Atomic) Ping(ctx context.Context) error { return a.g.Ping(ctx) }

// In runs calls in the caller's transaction, which the caller commits or rolls
// back; see [Store.Tx] for how to begin it. The handler runs within a savepoint:
// if it fails, its writes are rolled back, and the transaction can continue.
// Nothing is recorded until the caller commits. The Runner is not safe for
// concurrent use.
//
// SQLite itself rolls the transaction back if the disk is full, or if a context
// ends while a statement on tx writes. A statement on tx after such an error
// would commit at once: roll tx back, and execute nothing else on it.
func (a *Atomic) In(tx *sql.Tx) semel.Runner { return inTx{a, tx} }

type inTx struct {
	a  *Atomic
	tx *sql.Tx
}

// Run implements semel.Runner.
func (r inTx) Run(ctx context.Context, call semel.Call, fn semel.Handler) (semel.Result, error) {
	return driver.RunIn(ctx, r.a.g, r.a.s.Tx(r.tx), call, func(ctx context.Context, x *semel.Execution) (store.Outcome, error) {
		return r.a.s.runWithTx(ctx, r.tx, x, fn)
	})
}

// Do is semel.Do with a handler that gets the transaction.
func Do[T any](ctx context.Context, a *Atomic, call semel.Call, fn func(ctx context.Context, x *semel.Execution, tx *sql.Tx) (T, error)) (T, error) {
	return semel.Do(ctx, a, call, func(ctx context.Context, x *semel.Execution) (T, error) {
		tx, _ := TxFrom(ctx)
		return fn(ctx, x, tx)
	})
}

// Once is Do for work without a result.
func Once(ctx context.Context, a *Atomic, call semel.Call, fn func(ctx context.Context, x *semel.Execution, tx *sql.Tx) error) error {
	return semel.Once(ctx, a, call, func(ctx context.Context, x *semel.Execution) error {
		tx, _ := TxFrom(ctx)
		return fn(ctx, x, tx)
	})
}

type txKey struct{}

// txIn is the transaction of a running handler, and its store.
type txIn struct {
	s        *Store
	tx       *sql.Tx
	outer    *txIn       // the transaction around it; nil: none
	returned atomic.Bool // the handler has returned, though its context may still be used
}

// runWithTx runs fn with a context from which TxFrom and Run find tx, until fn returns.
func (s *Store) runWithTx(ctx context.Context, tx *sql.Tx, x *semel.Execution, fn semel.Handler) (store.Outcome, error) {
	in := &txIn{s: s, tx: tx}
	in.outer, _ = ctx.Value(txKey{}).(*txIn)
	defer in.returned.Store(true)
	return fn(context.WithValue(ctx, txKey{}, in), x)
}

// openTx returns the open transaction of this store whose handler uses ctx.
func (s *Store) openTx(ctx context.Context) (*sql.Tx, bool) {
	in, _ := ctx.Value(txKey{}).(*txIn)
	for ; in != nil; in = in.outer {
		if in.s == s && !in.returned.Load() {
			return in.tx, true
		}
	}
	return nil, false
}

// TxFrom returns the transaction of the Atomic whose handler got ctx, for
// http.Handlers and message handlers. Outside of a handler ok is false.
func TxFrom(ctx context.Context) (*sql.Tx, bool) {
	in, ok := ctx.Value(txKey{}).(*txIn)
	if !ok {
		return nil, false
	}
	return in.tx, true
}
