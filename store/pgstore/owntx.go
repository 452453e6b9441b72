package pgstore

import (
	"context"
	"database/sql"
	"errors"
	"fmt"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"

	"github.com/semel-go/semel"
	"github.com/semel-go/semel/store"
	"github.com/semel-go/semel/store/pgstore/internal/handlertx"
	"github.com/semel-go/semel/store/pgstore/internal/pgwire"
	"github.com/semel-go/semel/store/pgstore/internal/table"
)

// ownTx is the transaction of one try of Atomic.Run. It takes a connection with
// its first claim, unless a replay lookup answers that. BEGIN is sent together
// with the claim, and COMMIT together with the settlement.
type ownTx struct {
	storeTx
	duplicates *duplicateRate
	sqlDB      *sql.DB         // of DoSQL; nil: use the application's pool
	conn       *pgxpool.Conn   // of the application's pool
	sqlTx      *pgwire.SQLTx   // of sqlDB
	proposal   store.Proposal  // the argument of Claim; claimed points to it
	isClosed   bool            // the connection was closed before the end
	finished   handlertx.State // true: the handler has returned, or the transaction has ended
	committing bool            // COMMIT is sent
}

func (a *Atomic) newOwnTx() *ownTx {
	t := &ownTx{duplicates: &a.duplicates}
	t.handler, t.limit, t.finished.Limit = &t.finished, a.storeTimeout, a.storeTimeout
	t.store, t.deferInsert, t.ownsTx, t.idleTimeout = a.store, true, true, &a.store.idleTimeout
	return t
}

// connect takes a connection from the application's pool, and sends nothing. With
// database/sql it begins the transaction.
func (t *ownTx) connect(ctx context.Context) (err error) {
	if t.store.closed.Load() {
		return ErrClosed
	}
	if t.sqlDB != nil {
		if t.sqlTx, err = pgwire.BeginSQL(ctx, t.sqlDB); err != nil {
			return err
		}
		t.init(t.store, t.sqlTx.Driver, true)
		t.pipeline.Push(handlertx.CurrentID, nil, func(res pgx.BatchResults) error { // an sql.Tx cannot refuse its end
			var id handlertx.ID
			err := res.QueryRow().Scan(&id.XID, &id.Server)
			t.finished.Lend(id)
			return err
		})
		return nil
	}
	if t.conn, err = t.store.appPool.Acquire(ctx); err != nil {
		return err
	}
	t.init(t.store, t.conn.Conn(), true)
	t.pipeline.Begin = true
	return nil
}

// Claim implements store.Tx.
func (t *ownTx) Claim(ctx context.Context, p store.Proposal) (f store.Found, err error) {
	err = t.limited(ctx, func(ctx context.Context) error {
		f, err = t.claimOwn(ctx, p)
		return err
	})
	return f, err
}

// Swap implements store.Tx.
func (t *ownTx) Swap(ctx context.Context, seen store.Seen, p store.Proposal) (f store.Found, err error) {
	err = t.limited(ctx, func(ctx context.Context) error {
		f, err = t.storeTx.Swap(ctx, seen, p)
		return err
	})
	return f, err
}

// claimOwn is Claim without its limit.
func (t *ownTx) claimOwn(ctx context.Context, p store.Proposal) (f store.Found, err error) {
	id := table.ID(p.Key)
	if t.pipeline.DB == nil {
		if t.duplicates.high() {
			if f, ok := t.store.lookUpReplay(ctx, id, p.Key); ok {
				t.lastID = id
				t.duplicates.count(true)
				return f, nil
			}
		}
		if err := t.connect(ctx); err != nil {
			return f, pgwire.Explain("begin", err)
		}
	}
	t.proposal = p
	f, err = t.claimID(ctx, id, &t.proposal)
	if err == nil && (f.Won || replayable(&f)) {
		t.duplicates.count(!f.Won)
	}
	return f, err
}

// handlerContext is ctx with the transaction as a handler may use it.
func (t *ownTx) handlerContext(ctx context.Context) context.Context {
	if t.sqlTx != nil {
		return t.store.withTx(ctx, &txIn{sqlTx: t.sqlTx, finished: &t.finished.Bool})
	}
	return t.store.withTx(ctx, &txIn{tx: handlertx.New(t.pipeline.Tx, &t.finished), finished: &t.finished.Bool})
}

// commit commits, and waits for the synchronous standby if there is one.
func (t *ownTx) commit(ctx context.Context) error {
	return t.limited(ctx, func(ctx context.Context) error {
		before := t.store.commits.Count()
		err := t.sendCommit(ctx)
		// The store sees no warnings of a pool, or of an sql.DB, that it did not open.
		unseen := t.hasStandby && (t.sqlTx != nil || !t.store.ownsAppPool)
		if err == nil && (unseen || t.store.commits.Count() != before) {
			return t.store.confirm(ctx)
		}
		return err
	})
}

// sendCommit sends the queued statements, and COMMIT.
func (t *ownTx) sendCommit(ctx context.Context) error {
	t.finished.Store(true)
	t.queueCheck()
	t.committing = true
	if t.sqlTx != nil {
		if err := t.pipeline.Flush(ctx); err != nil {
			return err
		}
		return t.sqlTx.Commit(ctx)
	}
	committed := false
	t.pipeline.Push(commitStatement, nil, func(res pgx.BatchResults) error {
		tag, err := res.Exec()
		committed = err == nil && tag.String() == "COMMIT"
		if err == nil && !committed {
			err = fmt.Errorf("%w (%s)", pgwire.ErrRolledBack, tag)
		}
		return err
	})
	err := t.pipeline.Flush(ctx)
	if committed {
		return nil // a later error, for example of a server that stops, takes nothing back
	}
	return err
}

// end rolls back unless the transaction has committed, and gives the connection
// back. It may be called again.
func (t *ownTx) end() {
	t.finished.Store(true)
	if t.sqlTx != nil {
		t.isClosed = t.isClosed || t.sqlTx.Driver.IsClosed()
		t.sqlTx.End(t.limit)
		t.sqlTx = nil
	}
	if t.conn == nil {
		return
	}
	c := t.conn.Conn()
	t.isClosed = t.isClosed || c.IsClosed()
	if t.finished.Spoiled() {
		_ = c.Close(context.Background())
	}
	if !c.IsClosed() && c.PgConn().TxStatus() != 'I' {
		ctx, cancel := context.WithTimeout(context.Background(), t.limit)
		defer cancel()
		_, _ = c.Exec(ctx, "ROLLBACK") // if it fails, the pool closes the connection
	}
	t.conn.Release()
	t.conn = nil
}

// errConnectionClosed: the handler returned nil, but its connection is closed.
var errConnectionClosed = errors.New("pgstore: the connection of the transaction was closed while the handler ran")

// The states of a connection's transaction.
const (
	noTx     = 'I'
	openTx   = 'T'
	failedTx = 'E'
	brokenTx = 0 // there is no connection
)

// afterHandler is the error of a handler that has returned err, after a look at the
// state in which it left the transaction.
func (t *ownTx) afterHandler(ctx context.Context, err error) error {
	t.finished.Store(true)
	conn, refused := t.pipeline.Conn(), t.finished.Refused()
	hasEnded := handlertx.HasEnded(conn) || (err != nil || refused || handlertx.IsUnread(conn)) && t.endedUnnamed(ctx)
	err = t.closeUnread(err)
	if t.sqlTx != nil && t.sqlTx.Ended {
		hasEnded, t.unread = true, conn.IsClosed()
	}
	switch {
	case conn.IsClosed() && !hasEnded:
		if err == nil {
			err = errConnectionClosed
		}
		t.isClosed = true
		// An sql.Tx knows whether its handler has ended it by a method; otherwise the network did.
		mayEnd := t.finished.XID() != "" && (t.sqlTx == nil || t.unread || errors.Is(t.sqlTx.Tx.Rollback(), sql.ErrTxDone))
		t.ended = mayEnd && t.mayHaveCommitted(ctx)
	case hasEnded:
		if err == nil {
			err = handlertx.ErrEnded
		}
		t.ended = t.mayHaveCommitted(ctx)
	case err != nil && t.finished.XID() != "": // nobody has checked its statements
		checkErr := t.limited(context.WithoutCancel(ctx), func(ctx context.Context) error {
			_, err := conn.Exec(ctx, handlertx.CheckXID, t.finished.XID())
			return err
		})
		t.uncertain = checkErr != nil && (t.sqlTx == nil || !conn.IsClosed())
	case err == nil && refused:
		err, t.uncertain = handlertx.ErrEnded, t.finished.XID() != ""
	case err == nil && conn.PgConn().TxStatus() == failedTx:
		err, t.uncertain = errHiddenFailure, t.finished.XID() != ""
	}
	if t.ended {
		return fmt.Errorf("%w; it returned: %v", handlertx.ErrEnded, err) //nolint:errorlint // a Failure must not be kept
	}
	return err
}

// queueCheck queues a statement that fails if the handler has the connection itself,
// and has ended the transaction and begun another one.
func (t *storeTx) queueCheck() {
	sql, args := t.handler.Check()
	if sql == "" || t.restarted {
		return
	}
	t.checked = false
	t.pipeline.Push(sql, args, func(res pgx.BatchResults) error {
		_, err := res.Exec()
		if pgwire.Code(err) == handlertx.DivisionByZero {
			t.ended = true
			err = handlertx.ErrEnded
		}
		t.checked = err == nil
		return err
	})
}

// errFateUnknown: the handler may have committed, and the server does not say whether it
// has, or the store did not park its key.
var errFateUnknown = errors.New("the store did not record how the handler has ended the transaction")

// errUndone: the handler's failure is not recorded.
var errUndone = errors.New("the connection broke, and the transaction was rolled back")

// endedByHandler is the error of a run whose handler may have ended the transaction
// itself, and returned cause. If the handler has committed, the keys are parked, so that
// its effect has a record and does not happen again. errFateUnknown: one may not be parked.
func (a *Atomic) endedByHandler(ctx context.Context, t *ownTx, cause error, attempts ...*storeTx) error {
	if cause == nil {
		cause = handlertx.ErrEnded
	}
	t.end()
	committed, known := t.fate(ctx)
	if !known {
		return fmt.Errorf("%w: %w: the connection broke while the handler had it, and the server does not say whether the transaction was committed: %v", semel.ErrInDoubt, errFateUnknown, cause) //nolint:errorlint // a Failure must not be kept
	}
	var parkErr error
	for _, attempt := range attempts {
		if committed {
			parkErr = errors.Join(parkErr, a.parkKey(ctx, attempt))
		} else {
			_ = a.recordAttempt(ctx, attempt, cause)
		}
	}
	if _, kept := errors.AsType[*semel.Failure](cause); kept && !committed {
		return fmt.Errorf("%w: %v", errUndone, cause) //nolint:errorlint // as above
	}
	switch {
	case !committed:
		return cause
	case parkErr != nil:
		return fmt.Errorf("%w: %w: %w; its writes may be committed, and its key may not be parked: %w", semel.ErrInDoubt, errFateUnknown, handlertx.ErrEnded, parkErr)
	case len(attempts) == 1 && attempts[0].claimed == nil: // a step has no key
		return fmt.Errorf("%w: %w; its writes may be committed, and the step is not recorded", semel.ErrInDoubt, handlertx.ErrEnded)
	}
	return fmt.Errorf("%w: %w; its writes may be committed, so the key is parked until it is resolved", semel.ErrInDoubt, handlertx.ErrEnded)
}
