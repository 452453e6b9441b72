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

// Run runs fn once for a call, in a transaction of its own; [TxFrom] gives fn
// the transaction. It takes two round trips besides fn's own, and holds a
// connection of the application's pool while fn runs. While many calls are
// duplicates, calls look up their replays first, together, on a connection of the
// store's own.
//
// The transaction commits if fn's error is nil, or a *semel.Failure, which is
// kept while fn's writes are undone. If not, all is rolled back, and the attempt
// is noted in a second transaction for MaxAttempts, except for semel.NoEffect. A
// COMMIT that the server refuses for its content counts as an attempt too.
// Serialization failures and deadlocks run fn again, up to ten times, and do not
// count. A Run inside fn, with fn's context, joins the transaction, as [Atomic.In]
// does. For duplicates in flight, rules for fn and commits without an answer, see
// "Handlers of Atomic" in the package documentation.
func (a *Atomic) Run(ctx context.Context, call semel.Call, fn semel.Handler) (semel.Result, error) {
	return a.run(ctx, call, fn, nil)
}

// run is Run, or DoSQL if there is a db.
func (a *Atomic) run(ctx context.Context, call semel.Call, fn semel.Handler, db *sql.DB) (semel.Result, error) {
	if in, ok := a.s.inside(ctx); ok {
		if in.sql != nil {
			return a.runIn(ctx, in.sql.driver, call, func(ctx context.Context, x *semel.Execution) (store.Outcome, error) {
				return fn(a.s.withTx(ctx, &txIn{sql: in.sql, over: in.over}), x)
			})
		}
		return a.In(in.tx).Run(ctx, call, fn)
	}
	a.duplicates.running.Add(1)
	defer a.duplicates.running.Add(-1)
	start, pause := time.Now(), 5*time.Millisecond
	var w waiter
	defer w.leave(a.s.listener)
	for refused := 0; ; {
		w.join(a.s.listener)
		res, err := a.try(ctx, call, fn, &w, db)
		switch {
		case refusedForNow(err):
			if refused++; refused >= pgwire.Tries {
				return semel.Result{}, unavailable(ctx, call, err)
			}
		case errors.Is(err, semel.ErrInProgress) && time.Since(start) < call.Wait:
			pause = min(pause*3/2, 250*time.Millisecond, call.Wait)
			if w.next(); w.patient {
				pause = max(pause, a.patience)
			} else if w.notified != nil {
				pause = min(a.s.opt.notifiedPoll, call.Wait)
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

// refusedForNow reports whether a run that ended so may run again.
func refusedForNow(err error) bool { return pgwire.Again(err) || lostRace(err) }

// lostRace reports that another has inserted the key's record.
func lostRace(err error) bool {
	e, ok := errors.AsType[*pgconn.PgError](err)
	return ok && e.Code == pgwire.UniqueViolation && (e.TableName == table.Name || strings.HasPrefix(e.TableName, table.Name+"_p")) // a partition's
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
	t.db = db
	defer t.end()
	var said error // what the handler returned
	ran, returned := false, false
	defer func() {
		if ran && !returned {
			t.end()
			_ = a.noteAttempt(ctx, &t.storeTx, "panic, or runtime.Goexit")
		}
		if w.id = t.asked; ran {
			t.end()
			a.s.ended(t.asked) // whatever came of it
		}
	}()
	res, err = driver.RunIn(ctx, a.g, t, call, func(run context.Context, x *semel.Execution) (store.Outcome, error) {
		if err := w.admit(call, x); err != nil {
			return store.Outcome{}, err
		}
		ran = true
		o, err := fn(a.s.withRun(t.handlerContext(run, t.line.Tx), t.asked, &t.over), x)
		t.over.Store(true)
		if t.sql != nil && !t.sql.driver.IsClosed() && t.sql.driver.PgConn().TxStatus() == 'I' {
			err = errors.Join(errSQLTxEnded, err)
		}
		returned, said = true, err
		return o, err
	})
	// A Failure that is kept comes bare; one inside NoEffect was not kept.
	if f, kept := err.(*semel.Failure); err != nil && (!kept || f == nil) { //nolint:errorlint // see above
		t.end()
		if ran && said != nil && !pgwire.Again(said) && !lostRace(said) && !errors.Is(said, semel.ErrInProgress) && !driver.IsNoEffect(said) {
			_ = a.noteAttempt(ctx, &t.storeTx, said.Error())
		}
		return res, err // with ErrNotKept the result has what is left of it
	}
	if !ran {
		return res, err // there is nothing to commit
	}
	cerr := t.commit(ctx)
	if cerr == nil {
		return res, err
	}
	t.end()
	known := pgwire.Refused(cerr) || errors.Is(cerr, errRolledBack)
	if !known {
		var is bool
		if is, known = a.committed(ctx, t); is {
			return res, err
		}
	}
	if known && pgwire.RefusedForContent(cerr) && !lostRace(cerr) {
		_ = a.noteAttempt(ctx, &t.storeTx, cerr.Error())
	}
	if cerr = pgwire.Explain("commit", cerr); !known {
		cerr = fmt.Errorf("%w: %w", semel.ErrInDoubt, cerr)
	}
	if refusedForNow(cerr) {
		return semel.Result{}, cerr
	}
	return semel.Result{}, unavailable(ctx, call, cerr)
}

// aftermath is how long Run takes at most to see to what it left behind,
// though its caller's context may be over.
const aftermath = 10 * time.Second

// noteAttempt keeps the count of a try that was rolled back, unless somebody
// else has the key by now. It is for people and for MaxAttempts: if it fails,
// the next try has the same number.
func (a *Atomic) noteAttempt(ctx context.Context, t *storeTx, why string) (err error) {
	if t.won == nil {
		return nil
	}
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), aftermath)
	defer cancel()
	p := *t.won
	p.State, p.Error, p.Lease = store.Released, why, 0
	_, _ = crand.Read(p.Owner[:]) // it never fails
	if t.seen != nil {
		_, err = a.s.quick.swap(ctx, *t.seen, &p)
	} else {
		_, err = a.s.quick.claim(ctx, &p)
	}
	return err
}

// committed finds out whether a transaction whose COMMIT got no answer did
// commit: its key's lock is free only once it has ended. If that is not known, the
// key decides when the call comes again.
func (a *Atomic) committed(ctx context.Context, t *ownTx) (is, known bool) {
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), a.aftermath)
	defer cancel()
	for {
		is, err := a.s.cameOf(ctx, t.won)
		if err == nil {
			return is, true
		}
		if !pgwire.Sleep(ctx, 50*time.Millisecond) {
			return false, false
		}
	}
}

// cameOf reports whether the claim that won is committed and settled.
func (s *Store) cameOf(ctx context.Context, won *store.Proposal) (is bool, err error) {
	high, low := s.lockOf(table.ID(won.Key))
	err = pgx.BeginTxFunc(ctx, s.own, pgx.TxOptions{IsoLevel: pgx.ReadCommitted}, func(tx pgx.Tx) error {
		if _, err := tx.Exec(ctx, `SELECT pg_advisory_xact_lock($1::integer, $2::integer)`, high, low); err != nil {
			return err
		}
		f, err := (&session{db: tx, sql: s.txSQL, inTx: true}).get(ctx, won.Key)
		if errors.Is(err, store.ErrNotFound) {
			return nil
		}
		is = err == nil && f.Record.Owner == won.Owner && f.Record.State.Terminal()
		return err
	})
	return is, err
}
