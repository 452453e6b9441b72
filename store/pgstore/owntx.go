package pgstore

import (
	"context"
	"errors"
	"fmt"
	"sync/atomic"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"

	"github.com/semel-go/semel/store"
)

// ownTx is the transaction of one try of Atomic.Run. It has a connection from
// its claim on, unless that is answered without. Its BEGIN goes out with the
// claim, its COMMIT with the settlement.
type ownTx struct {
	*storeTx
	tide *tide
	conn *pgxpool.Conn
	over atomic.Bool
	to   handlerTx // of the handler
}

func (a *Atomic) newOwnTx() *ownTx {
	return &ownTx{tide: &a.tide, storeTx: &storeTx{s: a.s, late: true, own: true, idle: &a.s.idle}}
}

// connect takes a connection, on which nothing is sent yet.
func (t *ownTx) connect(ctx context.Context) (err error) {
	if t.s.closed.Load() {
		return ErrClosed
	}
	if t.conn, err = t.s.app.Acquire(ctx); err != nil {
		return err
	}
	t.init(t.s, t.conn.Conn(), true)
	t.line.begin = true
	return nil
}

// Claim implements store.Tx.
func (t *ownTx) Claim(ctx context.Context, p store.Proposal) (f store.Found, err error) {
	id := idOf(p.Key)
	if t.conn == nil {
		if t.tide.high() {
			if f, is := t.s.lookForKept(ctx, id, p.Key); is {
				t.asked = id
				t.tide.saw(true)
				return f, nil
			}
		}
		if err := t.connect(ctx); err != nil {
			return f, explain("begin", err)
		}
	}
	f, err = t.claimID(ctx, id, &p)
	if err == nil && (f.Won || stays(&f)) {
		t.tide.saw(!f.Won)
	}
	return f, err
}

// handler is the transaction for the handler.
func (t *ownTx) handler() pgx.Tx {
	t.to = handlerTx{t.line.tx, &t.over}
	return &t.to
}

// errRolledBack: the server took COMMIT for a rollback.
var errRolledBack = errors.New("the transaction had failed before, and was rolled back")

// commit sends what is left, and COMMIT.
func (t *ownTx) commit(ctx context.Context) error {
	t.over.Store(true)
	t.line.push("COMMIT", nil, func(res pgx.BatchResults) error {
		tag, err := res.Exec()
		if err == nil && tag.String() != "COMMIT" {
			err = fmt.Errorf("%w (%s)", errRolledBack, tag)
		}
		return err
	})
	return t.line.flush(ctx)
}

// end rolls back what was not committed, and gives the connection back.
// Harmless when repeated.
func (t *ownTx) end() {
	t.over.Store(true)
	if t.conn == nil {
		return
	}
	if c := t.conn.Conn(); !c.IsClosed() && c.PgConn().TxStatus() != 'I' {
		ctx, cancel := context.WithTimeout(context.Background(), 5*time.Second)
		defer cancel()
		_, _ = c.Exec(ctx, "ROLLBACK") // if it fails the pool closes the connection
	}
	t.conn.Release()
	t.conn = nil
}
