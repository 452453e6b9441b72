package pgstore

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync/atomic"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgtype"

	"github.com/semel-go/semel"
	"github.com/semel-go/semel/driver"
	"github.com/semel-go/semel/store"
	"github.com/semel-go/semel/store/pgstore/internal/pgwire"
)

// Atomic runs calls so that the record and the handler's writes to the database commit
// in one transaction. The effect then happens exactly once. It is a semel.Runner. Safe
// for concurrent use. Make it with [NewAtomic].
type Atomic struct {
	store *Store
	guard *semel.Guard

	savepointBatches atomic.Int32 // how many of the next batches begin with savepoints
	newKeyBatches    atomic.Int32 // how many of the last prefetches found new keys only; negative: a key was locked elsewhere
	// See the constants with these names. Tests change them.
	noteDelay, cleanupTimeout, prefetchTimeout time.Duration
	duplicates                                 duplicateRate // the share of duplicates among the calls of Run
}

var _ semel.Runner = (*Atomic)(nil)

// NewAtomic makes an Atomic of the store. Nil options mean the defaults. Options about
// leases and doubt must be zero, because a transaction that fails has had no effect.
// MaxAttempts counts attempts whose transactions were rolled back; see [Atomic.Run].
func NewAtomic(st *Store, o *semel.Options) (*Atomic, error) {
	if st == nil {
		return nil, errors.New("pgstore: NewAtomic: the store is nil; use that of Open or New")
	}
	if err := checkAtomic(o); err != nil {
		return nil, err
	}
	g, err := semel.New(st, o)
	if err != nil {
		return nil, err
	}
	return &Atomic{store: st, guard: g, noteDelay: noteDelay, cleanupTimeout: cleanupTimeout, prefetchTimeout: prefetchTimeout}, nil
}

func checkAtomic(o *semel.Options) error {
	if o == nil {
		return nil
	}
	var set []string
	for _, f := range []struct {
		name string
		set  bool
	}{
		{"OnDoubt", o.OnDoubt != semel.Retry}, {"Reconcile", o.Reconcile != nil}, {"Lease", o.Lease != 0},
		{"Reservation", o.Reservation != 0}, {"Backoff", o.Backoff != nil}, {"MaxWaiters", o.MaxWaiters != 0},
		{"SettleTimeout", o.SettleTimeout != 0}, {"Rerun", o.Rerun}, {"UnprotectedOnOutage", o.UnprotectedOnOutage},
	} {
		if f.set {
			set = append(set, f.name)
		}
	}
	if len(set) > 0 {
		return fmt.Errorf("pgstore: NewAtomic: semel.Options.%s must be zero: a transaction has no lease and no doubt", strings.Join(set, ", "))
	}
	return nil
}

// Retention is how long outcomes are kept.
func (a *Atomic) Retention() time.Duration { return a.guard.Retention() }

// Store is the store of NewAtomic.
func (a *Atomic) Store() *Store { return a.store }

// In runs calls in the caller's transaction, which the caller commits or rolls back;
// see [Store.Tx]. The handler runs within a savepoint: if it fails, its writes are
// undone, and the transaction can go on. Nothing is recorded until the caller commits.
// If another transaction is running the same key, the call is semel.ErrInProgress at
// once.
//
// Many calls may share one transaction. Each takes an advisory lock until the
// transaction ends. A server with default settings has about 6,000 locks in total
// (max_locks_per_transaction × max_connections). The Runner is not safe for concurrent
// use.
func (a *Atomic) In(tx pgx.Tx) semel.Runner { return inTx{a, tx} }

type inTx struct {
	atomic *Atomic
	tx     pgx.Tx
}

// Run implements semel.Runner.
func (r inTx) Run(ctx context.Context, call semel.Call, fn semel.Handler) (semel.Result, error) {
	return r.atomic.runIn(ctx, r.tx, call, func(ctx context.Context, x *semel.Execution) (store.Outcome, error) {
		var over atomic.Bool
		defer over.Store(true)
		return fn(r.atomic.store.withTx(ctx, &txIn{tx: r.tx, finished: &over}), x)
	})
}

// runIn runs a call in the open transaction of db.
func (a *Atomic) runIn(ctx context.Context, db pgwire.Execer, call semel.Call, fn semel.Handler) (semel.Result, error) {
	t := a.store.newTx(db, true)
	t.outerHandler, _ = ctx.Value(runningKey{}).(*runningHandler)
	res, err := driver.RunIn(ctx, a.guard, t, call, func(ctx context.Context, x *semel.Execution) (store.Outcome, error) {
		var over atomic.Bool
		defer over.Store(true)
		return fn(a.store.withRun(ctx, t.lastID, &over), x)
	})
	if lostRace(err) {
		err = &semel.Error{Reason: semel.ErrInProgress, Operation: call.Operation, RetryAfter: retryAfter, Cause: err}
	}
	return res, err
}

// Do is semel.Do for handlers that write to the database: fn gets the transaction.
func Do[T any](ctx context.Context, a *Atomic, call semel.Call, fn func(ctx context.Context, x *semel.Execution, tx pgx.Tx) (T, error)) (T, error) {
	return semel.Do(ctx, a, call, func(ctx context.Context, x *semel.Execution) (T, error) {
		tx, ok := TxFrom(ctx)
		if !ok {
			var none T
			return none, semel.NoEffect(errNoPgxTx)
		}
		return fn(ctx, x, tx)
	})
}

var errNoPgxTx = errors.New("pgstore: Do inside a handler of DoSQL: there is no pgx.Tx; use DoSQL there")

// Once is Do for work without a result.
func Once(ctx context.Context, a *Atomic, call semel.Call, fn func(ctx context.Context, x *semel.Execution, tx pgx.Tx) error) error {
	return semel.Once(ctx, a, call, func(ctx context.Context, x *semel.Execution) error {
		tx, ok := TxFrom(ctx)
		if !ok {
			return semel.NoEffect(errNoPgxTx)
		}
		return fn(ctx, x, tx)
	})
}

type txKey struct{}

// txIn is the transaction of a handler. Either tx or sqlTx is set.
type txIn struct {
	store    *Store
	tx       pgx.Tx
	sqlTx    *sqlTx
	finished *atomic.Bool // the handler has returned
	outer    *txIn        // the transaction of the handler around this one, or nil
}

// withTx adds a handler transaction of s to ctx.
func (s *Store) withTx(ctx context.Context, in *txIn) context.Context {
	in.store = s
	in.outer, _ = ctx.Value(txKey{}).(*txIn)
	return context.WithValue(ctx, txKey{}, in)
}

type runningKey struct{}

// runningHandler identifies the handler that a context was given to. The handler holds
// the lock of its key, but the record of the key is not written until the handler has
// returned. So a call for the same key in the same transaction would find the key
// free.
type runningHandler struct {
	store    *Store
	id       pgtype.UUID
	batch    *batchTry       // the batch that the handler runs for; nil: it runs for id only
	finished *atomic.Bool    // the handler has returned
	outer    *runningHandler // the handler around this one, or nil
}

func (s *Store) withRun(ctx context.Context, id pgtype.UUID, over *atomic.Bool) context.Context {
	outer, _ := ctx.Value(runningKey{}).(*runningHandler)
	return context.WithValue(ctx, runningKey{}, &runningHandler{store: s, id: id, finished: over, outer: outer})
}

// withBatch is the context of a handler that runs for all calls of a batch.
func withBatch(ctx context.Context, batch *batchTry, over *atomic.Bool) context.Context {
	outer, _ := ctx.Value(runningKey{}).(*runningHandler)
	return context.WithValue(ctx, runningKey{}, &runningHandler{store: batch.atomic.store, batch: batch, finished: over, outer: outer})
}

// runsKey reports whether this handler, or one around it, runs for the key.
func (r *runningHandler) runsKey(s *Store, id pgtype.UUID) bool {
	for ; r != nil; r = r.outer {
		if r.store == s && !r.finished.Load() && (r.id == id || r.batch.runsKey(id)) {
			return true
		}
	}
	return false
}

// runsKey reports whether the handler of the batch runs for the key.
func (b *batchTry) runsKey(id pgtype.UUID) bool {
	return b != nil && slices.ContainsFunc(b.calls, func(c batchCall) bool { return c.claimed != nil && c.id == id })
}

// inside finds the transaction of this store whose handler was given ctx, also if
// handlers of other stores are in between.
func (s *Store) inside(ctx context.Context) (*txIn, bool) {
	in, _ := ctx.Value(txKey{}).(*txIn)
	for ; in != nil; in = in.outer {
		if in.store == s && !in.finished.Load() {
			return in, true
		}
	}
	return nil, false
}

// TxFrom is the transaction of the Atomic whose handler was given ctx. Use it in
// http.Handlers and message handlers. It reports false outside of a handler.
func TxFrom(ctx context.Context) (pgx.Tx, bool) {
	in, ok := ctx.Value(txKey{}).(*txIn)
	if !ok || in.tx == nil {
		return nil, false
	}
	return in.tx, true
}
