package pgstore

import (
	"context"
	crand "crypto/rand"
	"database/sql"
	"errors"
	"fmt"
	"strings"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgconn"

	"github.com/semel-go/semel"
	"github.com/semel-go/semel/driver"
	"github.com/semel-go/semel/store"
	"github.com/semel-go/semel/store/pgstore/internal/pgwire"
	"github.com/semel-go/semel/store/pgstore/internal/table"
)

// Run runs fn once for a call, in a transaction of its own; [TxFrom] gives fn the
// transaction. It takes two round trips besides those of fn, and holds a connection of
// the application's pool while fn runs. If many calls are duplicates, Run looks up
// their replays first, together, on a connection of the store.
//
// The transaction commits if fn returns nil, or a *semel.Failure, which is stored
// while the writes of fn are undone. After any other error it is rolled back, and a
// second transaction records the attempt for MaxAttempts, except for semel.NoEffect. A
// COMMIT that the server refuses because of its content is an attempt too. After a
// serialization failure or a deadlock fn runs again, up to ten times; these do not
// count. A Run inside fn, with fn's context, joins the transaction, as [Atomic.In]
// does. For duplicates in flight, rules for fn and commits without an answer, see
// "Handlers of Atomic" in the package documentation.
func (a *Atomic) Run(ctx context.Context, call semel.Call, fn semel.Handler) (semel.Result, error) {
	return a.run(ctx, call, fn, nil)
}

// run is Run, or DoSQL if db is not nil.
func (a *Atomic) run(ctx context.Context, call semel.Call, fn semel.Handler, db *sql.DB) (semel.Result, error) {
	if in, ok := a.store.inside(ctx); ok {
		if in.sqlTx != nil {
			return a.runIn(ctx, in.sqlTx.driverConn, call, func(ctx context.Context, x *semel.Execution) (store.Outcome, error) {
				return fn(a.store.withTx(ctx, &txIn{sqlTx: in.sqlTx, finished: in.finished}), x)
			})
		}
		return a.In(in.tx).Run(ctx, call, fn)
	}
	a.duplicates.running.Add(1)
	defer a.duplicates.running.Add(-1)
	start, pause := time.Now(), 5*time.Millisecond
	var w waiter
	defer w.leave(a.store.listener)
	for refused := 0; ; {
		w.join(a.store.listener)
		res, err := a.try(ctx, call, fn, &w, db)
		switch {
		case refusedForNow(err):
			if refused++; refused >= pgwire.Tries {
				return semel.Result{}, unavailable(ctx, call, err)
			}
		case errors.Is(err, semel.ErrInProgress) && time.Since(start) < call.Wait:
			pause = min(pause*3/2, 250*time.Millisecond, call.Wait)
			if w.next(); w.waitedForNote {
				pause = max(pause, a.noteDelay)
			} else if w.notification != nil {
				pause = min(a.store.options.notifiedPoll, call.Wait)
			}
		default:
			return res, err
		}
		if !w.sleep(ctx, pause) {
			if refusedForNow(err) {
				err = unavailable(ctx, call, err)
			}
			return semel.Result{}, err
		}
	}
}

// refusedForNow reports whether a run that ended with err may run again.
func refusedForNow(err error) bool { return pgwire.Again(err) || lostRace(err) }

// lostRace reports whether another transaction has inserted the record of the key.
func lostRace(err error) bool {
	e, ok := errors.AsType[*pgconn.PgError](err)
	return ok && e.Code == pgwire.UniqueViolation && (e.TableName == table.Name || strings.HasPrefix(e.TableName, table.Name+"_p")) // also a partition
}

// unavailable is the error of a call that the store did not answer, or that ended
// because ctx has ended.
func unavailable(ctx context.Context, call semel.Call, err error) error {
	reason := semel.ErrUnavailable
	if ctx.Err() != nil {
		reason = semel.ErrCanceled
	}
	return &semel.Error{Reason: reason, Operation: call.Operation, Cause: err}
}

// try runs fn in one transaction.
func (a *Atomic) try(ctx context.Context, call semel.Call, fn semel.Handler, w *waiter, db *sql.DB) (res semel.Result, err error) {
	t := a.newOwnTx()
	t.sqlDB = db
	defer t.end()
	var handlerErr error
	ran, returned := false, false
	defer func() {
		if ran && !returned {
			t.end()
			_ = a.noteAttempt(ctx, &t.storeTx, "panic, or runtime.Goexit")
		}
		if w.id = t.lastID; ran {
			t.end()
			a.store.notifyEnd(t.lastID) // after a commit, and after a rollback
		}
	}()
	res, err = driver.RunIn(ctx, a.guard, t, call, func(run context.Context, x *semel.Execution) (store.Outcome, error) {
		if err := w.admit(call, x); err != nil {
			return store.Outcome{}, err
		}
		ran = true
		o, err := fn(a.store.withRun(t.handlerContext(run, t.pipeline.Tx), t.lastID, &t.finished), x)
		t.finished.Store(true)
		if t.sqlTx != nil && !t.sqlTx.driverConn.IsClosed() && t.sqlTx.driverConn.PgConn().TxStatus() == 'I' {
			err = errors.Join(errSQLTxEnded, err)
		}
		returned, handlerErr = true, err
		return o, err
	})
	// A Failure that is kept comes bare; one inside NoEffect was not kept.
	if f, kept := err.(*semel.Failure); err != nil && (!kept || f == nil) { //nolint:errorlint // see above
		t.end()
		if ran && handlerErr != nil && !pgwire.Again(handlerErr) && !lostRace(handlerErr) && !errors.Is(handlerErr, semel.ErrInProgress) && !driver.IsNoEffect(handlerErr) {
			_ = a.noteAttempt(ctx, &t.storeTx, handlerErr.Error())
		}
		return res, err // with ErrNotKept the result is not empty
	}
	if !ran {
		return res, err // there is nothing to commit
	}
	commitErr := t.commit(ctx)
	if commitErr == nil {
		return res, err
	}
	t.end()
	known := pgwire.Refused(commitErr) || errors.Is(commitErr, errRolledBack)
	if !known {
		var committed bool
		if committed, known = a.committed(ctx, t); committed {
			return res, err
		}
	}
	if known && pgwire.RefusedForContent(commitErr) && !lostRace(commitErr) {
		_ = a.noteAttempt(ctx, &t.storeTx, commitErr.Error())
	}
	if commitErr = pgwire.Explain("commit", commitErr); !known {
		commitErr = fmt.Errorf("%w: %w", semel.ErrInDoubt, commitErr)
	}
	if refusedForNow(commitErr) {
		return semel.Result{}, commitErr
	}
	return semel.Result{}, unavailable(ctx, call, commitErr)
}

// cleanupTimeout limits the work of Run after its transaction has ended. The context
// of the caller may have ended before.
const cleanupTimeout = 10 * time.Second

// noteAttempt records an attempt whose transaction was rolled back, unless another
// caller has claimed the key since. Only MaxAttempts and the displayed attempt depend
// on it: if it fails, the next attempt gets the same number.
func (a *Atomic) noteAttempt(ctx context.Context, t *storeTx, why string) (err error) {
	if t.claimed == nil {
		return nil
	}
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), cleanupTimeout)
	defer cancel()
	p := *t.claimed
	p.State, p.Error, p.Lease = store.Released, why, 0
	_, _ = crand.Read(p.Owner[:]) // it never fails
	if t.replaced != nil {
		_, err = a.store.laneSession.swap(ctx, *t.replaced, &p)
	} else {
		_, err = a.store.laneSession.claim(ctx, &p)
	}
	return err
}

// committed finds out whether a transaction has committed although COMMIT got no
// answer. It waits for the lock of the key, which is free only after the transaction
// has ended. If that cannot be known, the record decides when the call is made again.
func (a *Atomic) committed(ctx context.Context, t *ownTx) (committed, known bool) {
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), a.cleanupTimeout)
	defer cancel()
	for {
		committed, err := a.store.committedAndSettled(ctx, t.claimed)
		if err == nil {
			return committed, true
		}
		if !pgwire.Sleep(ctx, 50*time.Millisecond) {
			return false, false
		}
	}
}

// committedAndSettled reports whether the claim is committed and settled.
func (s *Store) committedAndSettled(ctx context.Context, won *store.Proposal) (settled bool, err error) {
	high, low := s.lockOf(table.ID(won.Key))
	err = pgx.BeginTxFunc(ctx, s.ownPool, pgx.TxOptions{IsoLevel: pgx.ReadCommitted}, func(tx pgx.Tx) error {
		if _, err := tx.Exec(ctx, `SELECT pg_advisory_xact_lock($1::integer, $2::integer)`, high, low); err != nil {
			return err
		}
		f, err := (&session{db: tx, sql: s.txSQL, inTx: true}).get(ctx, won.Key)
		if errors.Is(err, store.ErrNotFound) {
			return nil
		}
		settled = err == nil && f.Record.Owner == won.Owner && f.Record.State.Terminal()
		return err
	})
	return settled, err
}
