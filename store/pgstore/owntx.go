package pgstore

import (
	"context"
	"errors"
	"fmt"
	"sync/atomic"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"
)

// ownTx is the transaction of one try of Atomic.Run. Its BEGIN goes out with
// the claim, its COMMIT with the settlement.
type ownTx struct {
	*storeTx
	conn *pgxpool.Conn
	over atomic.Bool
	to   handlerTx // of the handler
}

func (s *Store) beginOwn(ctx context.Context) (*ownTx, error) {
	if s.closed.Load() {
		return nil, ErrClosed
	}
	conn, err := s.app.Acquire(ctx)
	if err != nil {
		return nil, err
	}
	t := &ownTx{storeTx: &storeTx{}, conn: conn}
	t.init(s, conn.Conn(), true)
	t.own, t.idle, t.line.begin = true, &s.idle, true
	return t, nil
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
