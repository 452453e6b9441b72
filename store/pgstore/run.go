package pgstore

import (
	"context"
	crand "crypto/rand"
	"errors"
	"fmt"
	"math/rand/v2"
	"strings"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgconn"
	"github.com/jackc/pgx/v5/pgtype"

	"github.com/semel-go/semel"
	"github.com/semel-go/semel/driver"
	"github.com/semel-go/semel/store"
)

// Run runs fn once for a call, in a transaction of its own; [TxFrom] gives fn
// the transaction. It takes two round trips besides fn's own, and holds a
// connection of the application's pool for as long as fn runs. While many calls
// are duplicates, calls look for what is kept before that, all at the time in
// one round trip on a connection of the store's own; who finds it needs no
// other.
//
// If calls of Run have all of the pool's connections, one that ends takes the
// first round trip of one that waits along with its own last, and hands over
// its connection, up to 16 times before the pool has it back; not if the pool
// has a PrepareConn, BeforeAcquire or AfterRelease. The two answers come
// together: what holds up the look of the other delays the return of this, and
// a tracer sees its statements in this call's batch. What holds up this COMMIT
// delays the other by a second at most: then it begins by itself.
//
// The transaction commits if fn's error is nil, or a *semel.Failure, which is
// kept while fn's own writes are undone; else all is rolled back, and the try
// is noted in a second transaction, so that Execution.Attempt and MaxAttempts
// count it (a try that dies with its process, or says semel.NoEffect, does not
// count). Serialization failures and dead locks, fn's or the commit's, run fn
// again, up to ten times, and do not count. Fn must not end the transaction,
// leave a statement running in it, or write to the database but through it. A Run
// inside fn, with fn's ctx, joins the transaction, as In does.
//
// Its own statements are prepared on a connection from the second run on, four of
// each store, whose names begin with semel_, beside those that pgx prepares. Where
// the pool has a tracer, or another exec mode than pgx's default, all go by pgx as
// the application's do. If fn takes them away (DEALLOCATE ALL), fn runs again.
// Between runs use pgx's Conn.DeallocateAll for that: after a DISCARD ALL of which
// pgx does not know some runs fail, without effect, as its own statements do.
//
// What fn got from the transaction is of no use when fn has returned. Only of
// LargeObjects and Conn this is not enforced: used later, they would act in
// another's transaction.
//
// A duplicate in flight is semel.ErrInProgress, or waits for up to Call.Wait.
// If the connection breaks while the transaction commits, Run finds out what
// came of it, for up to 10 s. If the server stays away for longer it is
// semel.ErrUnavailable although all may be committed: the same call finds out.
func (a *Atomic) Run(ctx context.Context, call semel.Call, fn semel.Handler) (semel.Result, error) {
	if tx, ok := a.s.inside(ctx); ok {
		return a.In(tx).Run(ctx, call, fn)
	}
	a.tide.running.Add(1)
	defer a.tide.running.Add(-1)
	start, pause := time.Now(), 5*time.Millisecond
	var w waiter
	defer w.leave(a.s.ear)
	held := false // once
	for refused := 0; ; {
		w.join(a.s.ear)
		res, err := a.try(ctx, call, fn, &w)
		switch {
		case errors.Is(err, errHeldUp):
			held = true
		case held && refused < tries && errors.Is(err, semel.ErrInProgress):
			refused++ // it may be what was begun for it, and comes too late
		case refusedForNow(err):
			if refused++; refused >= tries {
				return semel.Result{}, unavailable(call, err)
			}
		case errors.Is(err, semel.ErrInProgress) && time.Since(start) < call.Wait:
			pause = min(pause*3/2, 250*time.Millisecond, call.Wait)
			if w.next(); w.patient {
				pause = max(pause, a.patience)
			} else if w.told != nil {
				pause = min(a.s.opt.toldPoll, call.Wait)
			}
		default:
			return res, err
		}
		if !w.sleep(ctx, pause) {
			if refusedForNow(err) {
				err = unavailable(call, err)
			}
			return semel.Result{}, err
		}
	}
}

// waiter is a call that found its key taken. It gets what came of that, failures
// included, and not the right to run: else a crowd would run a failing handler
// once each.
type waiter struct {
	refused bool // once
	patient bool // it has held back already
	holds   bool // in this try

	id   pgtype.UUID // of the key, once it is known
	told *listener   // of who can be told of its end, under Options.Notify
}

// patience is how long a waiter gives a try that was rolled back to be noted,
// before it takes it for one that died with its process.
const patience = 50 * time.Millisecond

// next is after a try that found the key taken, or held back.
func (w *waiter) next() { w.refused, w.patient, w.holds = true, w.holds, false }

// admit refuses what is not for a waiter to run.
func (w *waiter) admit(call semel.Call, x *semel.Execution) error {
	switch {
	case !w.refused:
		return nil
	case x.Attempt() > 1:
		return &semel.Error{Reason: semel.ErrReleased, Operation: call.Operation}
	case !w.patient: // between the rollback and its note there is nothing to see
		w.holds = true
		return &semel.Error{Reason: semel.ErrInProgress, Operation: call.Operation}
	}
	return nil
}

// join makes sure that the end of a run is told, from now on.
func (w *waiter) join(e *ear) {
	if e == nil || !w.refused {
		return
	}
	w.leave(e)
	w.told, _ = e.join(w.id) // nil: who is not told polls, as all do
}

func (w *waiter) leave(e *ear) {
	if w.told != nil {
		e.leave(w.told)
		w.told = nil
	}
}

// sleep is around d, or until the end of the other run is told; false if ctx
// ended.
func (w *waiter) sleep(ctx context.Context, d time.Duration) bool {
	if w.told == nil || w.patient { // it is for another try's note, which may come later
		return sleep(ctx, d)
	}
	t := time.NewTimer(d/2 + rand.N(d))
	defer t.Stop()
	select {
	case <-w.told.told:
		return true
	case <-t.C:
		return true
	case <-ctx.Done():
		return false
	}
}

// sleep is around d, or reports false if ctx ended.
func sleep(ctx context.Context, d time.Duration) bool {
	t := time.NewTimer(d/2 + rand.N(d))
	defer t.Stop()
	select {
	case <-t.C:
		return true
	case <-ctx.Done():
		return false
	}
}

// refusedForNow reports whether a run that ended so may run again.
func refusedForNow(err error) bool { return again(err) || lostRace(err) || errors.Is(err, errStale) }

// lostRace reports that another has inserted the key's record.
func lostRace(err error) bool {
	e, ok := errors.AsType[*pgconn.PgError](err)
	return ok && e.Code == uniqueViolation && (e.TableName == recordTable || strings.HasPrefix(e.TableName, recordTable+"_p")) // a partition's
}

func unavailable(call semel.Call, err error) error {
	return &semel.Error{Reason: semel.ErrUnavailable, Operation: call.Operation, Cause: err}
}

// try runs fn in one transaction.
func (a *Atomic) try(ctx context.Context, call semel.Call, fn semel.Handler, w *waiter) (res semel.Result, err error) {
	t := a.newOwnTx()
	done := false // nobody asks about t any more
	defer func() {
		if t.end(); done {
			t.free()
		}
	}()
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
		o, err := fn(t.lend(run, ctx, t.line.tx), x)
		t.recall()
		returned, said = true, err
		return o, err
	})
	// A Failure that is kept comes bare; one inside NoEffect was not kept.
	if f, kept := err.(*semel.Failure); err != nil && (!kept || f == nil) { //nolint:errorlint // see above
		t.end()
		if ran && said != nil && !again(said) && !lostRace(said) && !errors.Is(said, semel.ErrInProgress) && !driver.IsNoEffect(said) {
			_ = a.noteAttempt(ctx, &t.storeTx, said.Error())
		}
		done = true
		return res, err // with ErrNotKept the result has what is left of it
	}
	if !ran {
		done = true
		return res, err // there is nothing to commit
	}
	cerr := t.commit(ctx)
	if cerr == nil {
		done = true
		return res, err
	}
	t.end()
	known := refused(cerr) || errors.Is(cerr, errRolledBack)
	if !known {
		var is bool
		if is, known = a.committed(ctx, t); is {
			return res, err
		}
	}
	if cerr = explain("commit", cerr); !known {
		cerr = fmt.Errorf("%w: %w", semel.ErrInDoubt, cerr)
	}
	if refusedForNow(cerr) {
		return semel.Result{}, cerr
	}
	return semel.Result{}, unavailable(call, cerr)
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
		if !sleep(ctx, 50*time.Millisecond) {
			return false, false
		}
	}
}

// cameOf reports whether the claim that won is committed and settled.
func (s *Store) cameOf(ctx context.Context, won *store.Proposal) (is bool, err error) {
	high, low := s.lockOf(idOf(won.Key))
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
