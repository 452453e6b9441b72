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

// Atomic runs calls so that the record and what the handler writes to the
// database commit in one transaction: that effect happens exactly once. It is
// a semel.Runner. Safe for concurrent use. Make it with [NewAtomic].
type Atomic struct {
	s *Store
	g *semel.Guard

	wary  atomic.Int32 // how many batches to begin with savepoints
	fresh atomic.Int32 // how many batches ahead, the last ones, had new keys only; negative: a key was another's
	// How long runs wait, and a look is kept: see the constants of these names.
	patience, aftermath, lookFor time.Duration
	duplicates                   duplicateRate // among the calls of Run
}

var _ semel.Runner = (*Atomic)(nil)

// NewAtomic makes an Atomic of the store. Nil options are the defaults; those
// that speak of leases and doubt must be zero, for a transaction has none of
// them: what fails has not happened. MaxAttempts counts, though the tries were
// rolled back: see [Atomic.Run].
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
	return &Atomic{s: st, g: g, patience: patience, aftermath: aftermath, lookFor: lookFor}, nil
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
func (a *Atomic) Retention() time.Duration { return a.g.Retention() }

// Store is where the records are: that of NewAtomic.
func (a *Atomic) Store() *Store { return a.s }

// In runs calls in the caller's transaction, which the caller commits or rolls
// back; see [Store.Tx]. The handler runs within a savepoint: if it fails, its
// writes are undone, and the transaction can go on. Nothing is recorded until
// the caller commits, and a duplicate in flight is semel.ErrInProgress at
// once. So many calls, each with its own end, may share one transaction; each
// takes an advisory lock until it ends, of which a server with its defaults has
// some 6,000 (max_locks_per_transaction × max_connections) for all. The Runner
// is not safe for concurrent use.
func (a *Atomic) In(tx pgx.Tx) semel.Runner { return inTx{a, tx} }

type inTx struct {
	a  *Atomic
	tx pgx.Tx
}

// Run implements semel.Runner.
func (r inTx) Run(ctx context.Context, call semel.Call, fn semel.Handler) (semel.Result, error) {
	return r.a.runIn(ctx, r.tx, call, func(ctx context.Context, x *semel.Execution) (store.Outcome, error) {
		var over atomic.Bool
		defer over.Store(true)
		return fn(r.a.s.withTx(ctx, &txIn{tx: r.tx, over: &over}), x)
	})
}

// runIn runs a call in the transaction that db has open.
func (a *Atomic) runIn(ctx context.Context, db pgwire.Execer, call semel.Call, fn semel.Handler) (semel.Result, error) {
	t := a.s.newTx(db, true)
	t.within, _ = ctx.Value(runningKey{}).(*runs)
	res, err := driver.RunIn(ctx, a.g, t, call, func(ctx context.Context, x *semel.Execution) (store.Outcome, error) {
		var over atomic.Bool
		defer over.Store(true)
		return fn(a.s.withRun(ctx, t.asked, &over), x)
	})
	if lostRace(err) {
		err = &semel.Error{Reason: semel.ErrInProgress, Operation: call.Operation, RetryAfter: retryAfter, Cause: err}
	}
	return res, err
}

// Do is semel.Do with a handler that gets its transaction.
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

// txIn is the transaction of a handler. Either tx or sql is set.
type txIn struct {
	s     *Store
	tx    pgx.Tx
	sql   *sqlTx
	over  *atomic.Bool // the handler has returned
	outer *txIn        // of the handler around it; nil: there is none
}

// withTx is ctx for the handler of a transaction of s.
func (s *Store) withTx(ctx context.Context, in *txIn) context.Context {
	in.s = s
	in.outer, _ = ctx.Value(txKey{}).(*txIn)
	return context.WithValue(ctx, txKey{}, in)
}

type runningKey struct{}

// runs says whose handler a context was given. It has the lock of its key, whose
// record is not written yet: so a call in the same transaction would find it free.
type runs struct {
	s     *Store
	id    pgtype.UUID
	whole *batchTry    // of whose calls it is the one handler; nil: of id's
	over  *atomic.Bool // the handler has returned
	outer *runs        // the handler around it; nil: there is none
}

func (s *Store) withRun(ctx context.Context, id pgtype.UUID, over *atomic.Bool) context.Context {
	outer, _ := ctx.Value(runningKey{}).(*runs)
	return context.WithValue(ctx, runningKey{}, &runs{s: s, id: id, over: over, outer: outer})
}

// withBatch is ctx for the one handler of all calls of a batch.
func withBatch(ctx context.Context, y *batchTry, over *atomic.Bool) context.Context {
	outer, _ := ctx.Value(runningKey{}).(*runs)
	return context.WithValue(ctx, runningKey{}, &runs{s: y.a.s, whole: y, over: over, outer: outer})
}

// has reports whether it is the handler of a key, or in that.
func (r *runs) has(s *Store, id pgtype.UUID) bool {
	for ; r != nil; r = r.outer {
		if r.s == s && !r.over.Load() && (r.id == id || r.whole.runs(id)) {
			return true
		}
	}
	return false
}

// runs reports whether a key is among those whose one handler runs.
func (y *batchTry) runs(id pgtype.UUID) bool {
	return y != nil && slices.ContainsFunc(y.batchCalls, func(v batchCall) bool { return v.won != nil && v.id == id })
}

// inside is the transaction of this store in whose handler ctx is used. Handlers of
// other stores may be in between.
func (s *Store) inside(ctx context.Context) (*txIn, bool) {
	in, _ := ctx.Value(txKey{}).(*txIn)
	for ; in != nil; in = in.outer {
		if in.s == s && !in.over.Load() {
			return in, true
		}
	}
	return nil, false
}

// TxFrom is the transaction of the Atomic whose handler was given ctx: for
// http.Handlers and message handlers. False outside of one.
func TxFrom(ctx context.Context) (pgx.Tx, bool) {
	in, ok := ctx.Value(txKey{}).(*txIn)
	if !ok || in.tx == nil {
		return nil, false
	}
	return in.tx, true
}
