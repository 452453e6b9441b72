package pgkafka

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"

	"github.com/semel-go/semel/store/pgstore"
	"github.com/semel-go/semel/store/pgstore/internal/handlertx"
	"github.com/semel-go/semel/store/pgstore/internal/pgwire"
)

// Do runs fn in a transaction, and moves the watermark in it. Fn writes the effects
// of the messages of the span. It may run again, after
// a serialization failure or a deadlock, and must not end the transaction (ErrEnded).
// If COMMIT fails, or the connection breaks meanwhile, Do finds out what became of it:
// ErrBroken if nothing was committed. After any other error nothing was committed
// either, except that it is not known if the database stays out of reach, or another
// owner has the partition by then; Own tells.
//
// Each of these has pgstore.Options.StoreTimeout: a connection and BEGIN, the change of the
// watermark, COMMIT, and the question what became of COMMIT. A COMMIT without an answer by
// then is cancelled, and has failed. Only ctx ends the statements of fn. Fn may leave tx idle
// for at most pgstore.Options.MaxIdleTx, 30 s by default (ErrIdle).
func (w *Watermark) Do(ctx context.Context, s Span, fn func(ctx context.Context, tx pgx.Tx) error) error {
	pause, last := 5*time.Millisecond, error(nil)
	for range pgwire.Tries {
		committing, err := w.try(ctx, s, fn)
		if err != nil && committing {
			err = w.outcome(ctx, s.Next, err)
		}
		if err == nil {
			w.Moved(s)
		}
		if !pgwire.Again(err) || !pgwire.Sleep(ctx, pause) {
			if committing && err != nil && pgwire.Refused(err) && !errors.Is(err, ErrBroken) {
				err = fmt.Errorf("%w: %w", ErrBroken, err)
			}
			return err
		}
		if last = nil; committing {
			last = err
		}
		pause = pause * 3 / 2
	}
	if last != nil { // a trigger can raise the code of a conflict
		return fmt.Errorf("%w: %d times: %w", ErrBroken, pgwire.Tries, last)
	}
	return fmt.Errorf("pgkafka: the transaction of a watermark conflicted with others %d times: %w", pgwire.Tries, pgstore.ErrBusy)
}

// try is Do in one transaction. It reports whether it has sent COMMIT.
func (w *Watermark) try(ctx context.Context, s Span, fn func(ctx context.Context, tx pgx.Tx) error) (committing bool, err error) {
	c, tx, err := w.begin(ctx)
	if err != nil {
		return false, err
	}
	state := handlertx.State{Limit: w.db.StoreTimeout}
	defer w.end(c, tx, &state)
	idle := idleCheck{conn: tx.Conn(), limit: w.db.MaxIdleTx, lastUse: time.Now()}
	state.BeforeUse = idle.use
	if err = w.lend(ctx, tx, &state, fn); err == nil {
		err = w.Move(ctx, tx, s)
	}
	if err != nil {
		return false, idle.explain(err)
	}
	err = w.db.Limited(ctx, func(ctx context.Context) error {
		warnings := w.db.Commits.Count()
		err := tx.Commit(ctx)
		if err == nil && (w.hasStandby && !w.db.SeesWarnings || w.db.Commits.Count() != warnings) {
			err = w.db.Confirm(ctx)
		}
		return err
	})
	if errors.Is(err, context.DeadlineExceeded) && ctx.Err() == nil {
		err = fmt.Errorf("%w; if COMMIT takes longer, because of deferred triggers, their locks or a slow standby, raise pgstore.Options.StoreTimeout", err)
	}
	if err != nil {
		err = fmt.Errorf("commit: %w", err)
	}
	return true, err
}

// begin takes a connection of the application's pool, and begins a transaction. If the
// connection is cut off, and nobody is told, the server ends the transaction after MaxIdleTx.
// Otherwise the messages, when they run again, would wait for the rows that it has locked.
func (w *Watermark) begin(ctx context.Context) (c *pgxpool.Conn, tx pgx.Tx, err error) {
	err = w.db.Limited(ctx, func(ctx context.Context) error {
		if c, err = w.db.App.Acquire(ctx); err != nil {
			return err
		}
		begin := "begin isolation level read committed; set local idle_in_transaction_session_timeout = '" + pgwire.Millis(w.db.MaxIdleTx) + "'"
		if tx, err = c.BeginTx(ctx, pgx.TxOptions{BeginQuery: begin}); err != nil {
			c.Release()
		}
		return err
	})
	return c, tx, pgwire.Explain("begin the transaction of a watermark", err)
}

// end rolls back unless the transaction has ended, and gives the connection back.
func (w *Watermark) end(c *pgxpool.Conn, tx pgx.Tx, state *handlertx.State) {
	ctx, cancel := context.WithTimeout(context.Background(), w.db.StoreTimeout)
	defer cancel()
	_ = tx.Rollback(ctx) // if it fails, the driver closes the connection
	if state.Spoiled() {
		_ = c.Conn().Close(ctx)
	}
	c.Release()
}

// lend runs fn with a transaction that it must not end.
func (w *Watermark) lend(ctx context.Context, tx pgx.Tx, state *handlertx.State, fn func(ctx context.Context, tx pgx.Tx) error) error {
	defer state.Store(true)
	conn, err := tx.Conn(), fn(ctx, handlertx.New(tx, state))
	hasEnded := handlertx.HasEnded(conn)
	err = handlertx.CloseUnread(conn, w.db.StoreTimeout, err)
	switch {
	case hasEnded:
		return fmt.Errorf("%w; it returned: %v", ErrEnded, err) //nolint:errorlint // it is not the cause
	case err != nil:
		return err
	case state.Refused():
		return ErrEnded
	}
	if err := state.BeforeUse(ctx); err != nil {
		return err
	}
	if state.XID() != "" && !conn.IsClosed() {
		err = w.db.Limited(ctx, func(ctx context.Context) error {
			_, err := tx.Exec(ctx, handlertx.CheckXID, state.XID())
			return err
		})
		if pgwire.Code(err) == handlertx.DivisionByZero {
			return ErrEnded
		}
	}
	return nil
}

// outcome is the error of a COMMIT, or nil if the COMMIT has moved the watermark.
func (w *Watermark) outcome(ctx context.Context, next int64, err error) error {
	broke := pgwire.Code(err) == "" || strings.HasPrefix(pgwire.Code(err), "08") || strings.HasPrefix(pgwire.Code(err), "57P") || pgwire.EndsConnection(err)
	if !pgwire.Refused(err) {
		switch moved, known := w.hasMoved(ctx, next); {
		case moved:
			return nil
		case !known:
			return err
		}
	}
	if broke && ctx.Err() == nil {
		err = fmt.Errorf("%w: %w", ErrBroken, err)
	}
	return err
}

// hasMoved reports whether a COMMIT without an answer has moved the watermark, if
// that can be known. It waits for the lock of the row, which the transaction holds
// until it has ended, and asks for StoreTimeout in all.
func (w *Watermark) hasMoved(ctx context.Context, next int64) (moved, known bool) {
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), w.db.StoreTimeout)
	defer cancel()
	for {
		at := int64(0)
		err := pgx.BeginTxFunc(ctx, w.db.Own, pgx.TxOptions{IsoLevel: pgx.ReadCommitted}, func(tx pgx.Tx) (err error) {
			if _, err = tx.Exec(ctx, w.sql.lockRow, w.partition.Consumer, w.partition.Topic, w.partition.Partition, pgwire.Millis(w.db.MaxIdleTx)); err == nil {
				at, err = w.read(ctx, tx)
			}
			return err
		})
		switch {
		case errors.Is(err, ErrFenced): // it is another's, who knows how far this one came
			return false, false
		case err == nil && at < next:
			return false, true
		case err == nil && w.db.Confirm(ctx) == nil:
			return true, true
		case !pgwire.Sleep(ctx, 50*time.Millisecond):
			return false, false
		}
	}
}
