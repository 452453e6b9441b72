package pgstore

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"sync/atomic"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"

	"github.com/semel-go/semel/store"
	"github.com/semel-go/semel/store/pgstore/internal/pgwire"
)

// ownTx is the transaction of one try of Atomic.Run. It takes a connection with
// its first claim, unless a replay lookup answers that. BEGIN is sent together
// with the claim, and COMMIT together with the settlement.
type ownTx struct {
	storeTx
	duplicates *duplicateRate
	db         *sql.DB        // of DoSQL; nil: the transaction is one of the application's pool
	conn       *pgxpool.Conn  // of the pool
	sql        *sqlTx         // of db
	last       store.Proposal // the argument of Claim; won points to it
	over       atomic.Bool    // the handler has returned, or the transaction has ended
}

func (a *Atomic) newOwnTx() *ownTx {
	t := &ownTx{duplicates: &a.duplicates}
	t.s, t.late, t.own, t.idle = a.s, true, true, &a.s.idle
	return t
}

// connect takes a connection from the application's pool, and sends nothing. With
// database/sql it begins the transaction.
func (t *ownTx) connect(ctx context.Context) (err error) {
	if t.s.closed.Load() {
		return ErrClosed
	}
	if t.db != nil {
		if t.sql, err = beginSQL(ctx, t.db); err != nil {
			return err
		}
		t.init(t.s, t.sql.driver, true)
		return nil
	}
	if t.conn, err = t.s.app.Acquire(ctx); err != nil {
		return err
	}
	t.init(t.s, t.conn.Conn(), true)
	t.line.Begin = true
	return nil
}

// Claim implements store.Tx.
func (t *ownTx) Claim(ctx context.Context, p store.Proposal) (f store.Found, err error) {
	id := idOf(p.Key)
	if t.line.DB == nil {
		if t.duplicates.high() {
			if f, ok := t.s.lookUpReplay(ctx, id, p.Key); ok {
				t.asked = id
				t.duplicates.count(true)
				return f, nil
			}
		}
		if err := t.connect(ctx); err != nil {
			return f, pgwire.Explain("begin", err)
		}
	}
	t.last = p
	f, err = t.claimID(ctx, id, &t.last)
	if err == nil && (f.Won || stays(&f)) {
		t.duplicates.count(!f.Won)
	}
	return f, err
}

// handlerContext is ctx with the transaction as a handler may use it.
func (t *ownTx) handlerContext(ctx context.Context, tx pgx.Tx) context.Context {
	if t.sql != nil {
		return t.s.withTx(ctx, &txIn{sql: t.sql, over: &t.over})
	}
	return t.s.withTx(ctx, &txIn{tx: &handlerTx{Tx: tx, over: &t.over}, over: &t.over})
}

// errRolledBack: the server answered COMMIT with a rollback.
var errRolledBack = errors.New("the transaction had failed before, and was rolled back")

// commit sends the queued statements, and COMMIT.
func (t *ownTx) commit(ctx context.Context) error {
	t.over.Store(true)
	if t.sql != nil {
		if err := t.line.Flush(ctx); err != nil {
			return err
		}
		return t.sql.commit(ctx)
	}
	t.line.Push(commitStatement, nil, func(res pgx.BatchResults) error {
		tag, err := res.Exec()
		if err == nil && tag.String() != "COMMIT" {
			err = fmt.Errorf("%w (%s)", errRolledBack, tag)
		}
		return err
	})
	return t.line.Flush(ctx)
}

// end rolls back unless the transaction has committed, and gives the connection
// back. It may be called again.
func (t *ownTx) end() {
	t.over.Store(true)
	if t.sql != nil {
		t.sql.end()
		t.sql = nil
	}
	if t.conn == nil {
		return
	}
	c := t.conn.Conn()
	if !c.IsClosed() && c.PgConn().TxStatus() != 'I' {
		ctx, cancel := context.WithTimeout(context.Background(), 5*time.Second)
		defer cancel()
		_, _ = c.Exec(ctx, "ROLLBACK") // if it fails, the pool closes the connection
	}
	t.conn.Release()
	t.conn = nil
}
