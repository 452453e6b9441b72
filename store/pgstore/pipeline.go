package pgstore

import (
	"context"

	"github.com/jackc/pgx/v5"
)

// pipeline collects statements of one transaction, and sends them together with
// the next statement whose answer is needed.
type pipeline struct {
	db    execer
	queue []step
	sent  int // how many steps were sent before those in queue

	begin bool   // the first flush begins the transaction
	tx    pgx.Tx // the transaction that a flush has begun
}

// step is one statement. If read is nil, its answer has nothing to read.
type step struct {
	sql  string
	args []any
	read func(pgx.BatchResults) error
}

func (l *pipeline) push(sql string, args []any, read func(pgx.BatchResults) error) {
	l.queue = append(l.queue, step{sql, args, read})
}

// conn is the connection. It is nil while nothing was sent on one.
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

// length is the number of steps that were pushed, sent ones included.
func (l *pipeline) length() int { return l.sent + len(l.queue) }

// flush sends the queue in one round trip. If a step fails, the server does not
// carry out the steps after it.
func (l *pipeline) flush(ctx context.Context) (err error) {
	if len(l.queue) == 0 {
		return nil
	}
	if err := ctx.Err(); err != nil {
		return err // nothing was sent: the queue can still be cut
	}
	steps, begins := l.queue, l.begin
	l.sent, l.queue, l.begin = l.length(), nil, false
	b := pgx.Batch{QueuedQueries: make([]*pgx.QueuedQuery, 0, len(steps)+1)}
	if begins {
		b.BeginTx(pgx.TxOptions{IsoLevel: pgx.ReadCommitted})
	}
	for _, s := range steps {
		b.Queue(s.sql, s.args...)
	}
	res := l.db.SendBatch(ctx, &b)
	defer func() {
		if cerr := res.Close(); err == nil {
			err = cerr
		}
	}()
	if begins {
		l.tx = res.Tx()
		if _, err := res.Exec(); err != nil {
			return err
		}
	}
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

// cut removes the steps from number at on from the queue. If step at was already
// sent, cut removes the whole queue and reports true.
func (l *pipeline) cut(at int) (sent bool) {
	if at < l.sent {
		l.queue = nil
		return true
	}
	l.queue = l.queue[:at-l.sent]
	return false
}
