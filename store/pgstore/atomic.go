package pgstore

import (
	"cmp"
	"context"
	"database/sql"
	"errors"
	"fmt"
	"strings"
	"sync/atomic"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgtype"

	"github.com/semel-go/semel"
	"github.com/semel-go/semel/driver"
	"github.com/semel-go/semel/store"
	"github.com/semel-go/semel/store/pgstore/internal/handlertx"
	"github.com/semel-go/semel/store/pgstore/internal/pgwire"
	"github.com/semel-go/semel/store/pgstore/internal/table"
)

// Atomic runs calls so that the record and the handler's writes to the database commit
// in one transaction. The effect then happens exactly once. An Atomic is a semel.Runner,
// and safe for concurrent use. Make it with [NewAtomic].
type Atomic struct {
	store   *Store
	guard   *semel.Guard
	outside store.Store // claims and swaps outside of the transaction, encrypted as the Guard's

	savepointBatches atomic.Int32 // how many of the next batches begin with savepoints
	foundLockedKey   atomic.Bool  // the last prefetch found a key that was locked elsewhere
	// See the constants with these names. Tests change them.
	recordDelay, cleanupTimeout, prefetchTimeout time.Duration
	storeTimeout                                 time.Duration // of each call of the store in a call of Run
	duplicates                                   duplicateRate // the share of duplicates among the calls of Run
}

var _ semel.Runner = (*Atomic)(nil)

// NewAtomic makes an Atomic that keeps its records in st. Nil options mean the defaults.
// MaxAttempts counts attempts whose transactions were rolled back; see [Atomic.Run].
//
// These options must be zero, because a transaction has no lease, and a call whose handler
// used only its transaction can be repeated after a crash: OnDoubt, Reconcile, Lease, Reservation, Backoff, MaxWaiters,
// SettleTimeout, Rerun and UnprotectedOnOutage. NewAtomic's error names those that are set.
//
// StoreTimeout limits each of these by itself: a connection, BEGIN and the claim, the lookup
// of a batch, or the steps of a call, together; each statement of the store after that;
// COMMIT; and the work after a COMMIT that failed. Only their context ends the statements
// of the handler. In [Atomic.In] StoreTimeout limits nothing.
func NewAtomic(st *Store, o *semel.Options) (*Atomic, error) {
	if st == nil {
		return nil, errors.New("pgstore: NewAtomic: the store is nil; use the store that Open or New returned")
	}
	wrong := driver.LeaseOptions(o)
	if len(wrong) > 0 {
		return nil, fmt.Errorf("pgstore: NewAtomic: semel.Options.%s must be zero: a transaction has no lease and no doubt", strings.Join(wrong, ", "))
	}
	g, err := semel.New(st, o)
	if err != nil {
		return nil, err
	}
	limit, outside := defaultStoreTimeout, store.Store(shortWaitStore{Store: st})
	if o != nil {
		limit, outside = cmp.Or(o.StoreTimeout, limit), o.Encryption.Store(outside)
	}
	return &Atomic{store: st, guard: g, outside: outside, recordDelay: recordDelay, cleanupTimeout: limit, prefetchTimeout: min(prefetchTimeout, limit), storeTimeout: limit}, nil
}

// defaultStoreTimeout is the default of semel.Options.StoreTimeout.
const defaultStoreTimeout = 5 * time.Second

// Retention returns how long outcomes are kept: semel.Options.Retention.
func (a *Atomic) Retention() time.Duration { return a.guard.Retention() }

// StoreKey is the key under which the store has the record of a call: semel.Guard.StoreKey.
func (a *Atomic) StoreKey(call semel.Call) store.Key { return a.guard.StoreKey(call) }

// Ping returns nil if the store answers a read within StoreTimeout. Use it after
// semel.ErrUnavailable, to tell an outage from trouble with one key.
func (a *Atomic) Ping(ctx context.Context) error { return a.guard.Ping(ctx) }

// Store returns the store that NewAtomic got.
func (a *Atomic) Store() *Store { return a.store }

// In returns a Runner that runs calls in a transaction of the caller, who commits it or
// rolls it back. The handler runs within a savepoint: if it fails, its writes are undone,
// and the transaction can go on. The commit also records the results and the
// *semel.Failures of the handlers. A plain error is never recorded, so MaxAttempts does
// not count it. If another transaction is running the same key, the call ends at once
// with semel.ErrInProgress, even if Call.Wait is set. See [Store.Tx] for isolation levels.
// If a handler ends the transaction with the connection of tx.Conn, the call fails. Writes
// that it has committed have no record, and a later call runs the handler again.
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
		var state handlertx.State
		defer state.Store(true)
		o, err := fn(r.atomic.store.withTx(ctx, &txIn{tx: handlertx.New(r.tx, &state), finished: &state.Bool}), x)
		conn := handlertx.ConnOf(r.tx)
		switch {
		case conn == nil || conn.IsClosed():
		case conn.PgConn().TxStatus() == noTx:
			err = fmt.Errorf("%w; it returned: %v", handlertx.ErrEnded, err) //nolint:errorlint // a Failure must not be kept
		case state.HasOther(ctx, conn, r.atomic.storeTimeout): // as above
			err = fmt.Errorf("%w; it returned: %v", handlertx.ErrEnded, err) //nolint:errorlint // a Failure must not be kept
		case err == nil && state.Refused():
			err = handlertx.ErrEnded
		case err == nil && conn.PgConn().TxStatus() == failedTx:
			err = errHiddenFailure
		}
		return o, err
	})
}

// runIn runs a call in the open transaction of db.
func (a *Atomic) runIn(ctx context.Context, db pgwire.Execer, call semel.Call, fn semel.Handler) (semel.Result, error) {
	if h, ok := db.(*handlertx.Tx); ok {
		db = h.ForStore()
	}
	t := a.store.newTx(db, true)
	t.outerHandler, _ = ctx.Value(runningKey{}).(*runningHandler)
	began := false
	res, err := driver.RunIn(ctx, a.guard, t, call, func(ctx context.Context, x *semel.Execution) (store.Outcome, error) {
		began = true
		var over atomic.Bool
		defer over.Store(true)
		o, err := fn(a.store.withRun(ctx, t.lastID, &over), x)
		if err = driver.ReadableError(err); !handlertx.HasEnded(t.pipeline.Conn()) { // otherwise the handler around it has to see that
			err = t.closeUnread(err)
		}
		return o, err
	})
	if table.LostRace(err) {
		err = &semel.Error{Reason: semel.ErrInProgress, Operation: call.Operation, RetryAfter: retryAfter, Cause: err}
		began = false
	}
	if !began && !t.withinItself && errors.Is(err, semel.ErrInProgress) {
		err = &joinedError{err, t.pipeline.Conn()}
	}
	return res, err
}

// Do runs fn once for a call, in a transaction that commits fn's writes together with
// the record, and returns fn's result. A duplicate gets the recorded result. [Atomic.Run]
// explains errors and retries. Results are encoded as by semel.Do.
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

// Once is [Do] for work without a result.
func Once(ctx context.Context, a *Atomic, call semel.Call, fn func(ctx context.Context, x *semel.Execution, tx pgx.Tx) error) error {
	return semel.Once(ctx, a, call, func(ctx context.Context, x *semel.Execution) error {
		tx, ok := TxFrom(ctx)
		if !ok {
			return semel.NoEffect(errNoPgxTx)
		}
		return fn(ctx, x, tx)
	})
}

// DoSQL is [Do] for applications with database/sql: it begins a transaction on db for
// fn, and commits it together with the record. The driver of db must be pgx (package
// stdlib), and its database must be the store's database. Results, errors and retries are
// as with Do. The differences:
//
//   - An *sql.Tx cannot refuse Commit and Rollback. Fn must not call Commit: its writes
//     would be committed without a record. DoSQL then returns semel.ErrInDoubt, and
//     parks the key. If fn calls Rollback, DoSQL returns an error.
//   - Fn must close its sql.Rows before it returns.
//   - DoSQL takes four round trips besides those of fn, where Do takes two, because
//     BEGIN and COMMIT take one each. If fn fails, it takes six.
//   - If fn calls DoSQL, semel.Do or semel.Once with its context and the same Atomic,
//     that call joins the transaction in a savepoint. Do and [TxFrom] do not work
//     inside fn, because there is no pgx.Tx.
func DoSQL[T any](ctx context.Context, a *Atomic, db *sql.DB, call semel.Call, fn func(ctx context.Context, x *semel.Execution, tx *sql.Tx) (T, error)) (T, error) {
	return semel.Do(ctx, sqlRunner{a, db}, call, func(ctx context.Context, x *semel.Execution) (T, error) {
		in, _ := ctx.Value(txKey{}).(*txIn)
		return fn(ctx, x, in.sqlTx.Tx)
	})
}

// sqlRunner runs calls in transactions of db.
type sqlRunner struct {
	atomic *Atomic
	db     *sql.DB
}

// Run implements semel.Runner.
func (r sqlRunner) Run(ctx context.Context, call semel.Call, fn semel.Handler) (semel.Result, error) {
	in, inside := r.atomic.store.inside(ctx)
	switch {
	case r.db == nil:
		return semel.Result{}, errors.New("pgstore: DoSQL: the sql.DB is nil")
	case inside && in.sqlTx == nil:
		return semel.Result{}, errors.New("pgstore: DoSQL inside a handler of Do: its transaction is a pgx.Tx; use Do there")
	}
	return r.atomic.run(ctx, call, fn, r.db)
}

type txKey struct{}

// txIn is the transaction of a handler. Either tx or sqlTx is set.
type txIn struct {
	store    *Store
	tx       pgx.Tx
	sqlTx    *pgwire.SQLTx
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

// TxFrom returns the transaction of the running handler of an Atomic. Use it in code that
// gets only the handler's context, such as an http.Handler or a message handler. TxFrom
// reports false outside of a handler, and inside a handler of [DoSQL].
func TxFrom(ctx context.Context) (pgx.Tx, bool) {
	in, ok := ctx.Value(txKey{}).(*txIn)
	if !ok || in.tx == nil {
		return nil, false
	}
	return in.tx, true
}
