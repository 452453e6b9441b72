package pgstore

import (
	"context"
	"fmt"
	"slices"

	"github.com/jackc/pgx/v5"
)

// pipeline holds back statements of a transaction, to send them together with the
// next that has to be answered.
type pipeline struct {
	db   execer
	wait []step
	room [5]step // for wait
	sent int     // how many went before those that wait

	begin  bool    // a transaction, with what is sent first
	tx     pgx.Tx  // the one that began
	direct *direct // nil: all goes by pgx
}

type step struct {
	sql  string
	args []any
	read func(pgx.BatchResults) error // nil: there is nothing to read
}

func (l *pipeline) push(sql string, args []any, read func(pgx.BatchResults) error) {
	if l.wait == nil {
		l.wait = l.room[:0]
	}
	l.wait = append(l.wait, step{sql, args, read})
}

// conn is the connection, once something was sent.
func (l *pipeline) conn() *pgx.Conn {
	if l.tx != nil {
		return l.tx.Conn()
	}
	switch db := l.db.(type) {
	case pgx.Tx:
		return db.Conn()
	case *pgx.Conn:
		return db
	}
	return nil
}

// length is how many steps were pushed, ever.
func (l *pipeline) length() int { return l.sent + len(l.wait) }

// flush sends what waits in one round trip. If one fails, those behind it are
// not carried out.
func (l *pipeline) flush(ctx context.Context) error {
	if len(l.wait) == 0 {
		return nil
	}
	if err := ctx.Err(); err != nil {
		return err // nothing was sent: what waits can still be cut
	}
	steps := l.wait
	l.sent, l.wait = l.length(), nil
	begins := l.begin
	if l.begin = false; begins {
		steps = slices.Insert(steps, 0, step{sql: beginSQL})
	}
	if !l.direct.knows(steps) {
		return l.flushByPgx(ctx, steps, begins)
	}
	conn := l.conn()
	if begins {
		l.tx = l.direct.tx
	}
	res, err := l.direct.send(ctx, conn, steps)
	if err == nil {
		err = read(res, steps)
	}
	if !stale(err, begins) {
		return err
	}
	if l.direct.off = true; !begins {
		return fmt.Errorf("%w: %w", errStale, err)
	}
	if conn.PgConn().TxStatus() != 'I' {
		if _, err := conn.Exec(ctx, "ROLLBACK"); err != nil {
			return err
		}
	}
	return l.flushByPgx(ctx, steps, begins) // nothing is done yet
}

// flushByPgx sends steps, of which the first may begin a transaction.
func (l *pipeline) flushByPgx(ctx context.Context, steps []step, begins bool) error {
	b := pgx.Batch{QueuedQueries: make([]*pgx.QueuedQuery, 0, len(steps))}
	for i, s := range steps {
		if i == 0 && begins {
			b.BeginTx(pgx.TxOptions{IsoLevel: pgx.ReadCommitted})
		} else {
			b.Queue(s.sql, forPgx(s.args)...)
		}
	}
	res := l.db.SendBatch(ctx, &b)
	if begins {
		l.tx = res.Tx()
	}
	err := read(res, steps)
	if begins && err == nil {
		l.direct.began(l.tx)
	}
	return err
}

// read reads the answers to steps, up to the first that failed.
func read(res pgx.BatchResults, steps []step) (err error) {
	defer func() {
		if cerr := res.Close(); err == nil {
			err = cerr
		}
	}()
	for _, s := range steps {
		if s.read != nil {
			err = s.read(res)
		} else {
			_, err = res.Exec()
		}
		if err != nil {
			return err
		}
	}
	return nil
}

// cut drops what waits from a place on. It reports whether the step there was
// sent.
func (l *pipeline) cut(at int) (sent bool) {
	if at < l.sent {
		l.wait = nil
		return true
	}
	l.wait = l.wait[:at-l.sent]
	return false
}
