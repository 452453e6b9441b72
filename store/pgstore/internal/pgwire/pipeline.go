package pgwire

import (
	"context"

	"github.com/jackc/pgx/v5"
)

// Pipeline collects statements of one transaction, and sends them together with
// the next statement whose answer is needed.
type Pipeline struct {
	DB    Execer
	queue []step
	sent  int // how many steps were sent before those in queue

	Begin bool   // the first flush begins the transaction
	Tx    pgx.Tx // the transaction that a flush has begun
}

// step is one statement. If read is nil, its answer has nothing to read.
type step struct {
	sql  string
	args []any
	read func(pgx.BatchResults) error
}

// Push appends a statement to the queue. Read, if not nil, reads its answer.
func (l *Pipeline) Push(sql string, args []any, read func(pgx.BatchResults) error) {
	l.queue = append(l.queue, step{sql, args, read})
}

// Conn is the connection. It is nil while nothing was sent on one.
func (l *Pipeline) Conn() *pgx.Conn {
	if l.Tx != nil {
		return l.Tx.Conn()
	}
	switch db := l.DB.(type) {
	case pgx.Tx:
		return db.Conn()
	case *pgx.Conn:
		return db
	}
	return nil
}

// Length is the number of steps that were pushed, sent ones included.
func (l *Pipeline) Length() int { return l.sent + len(l.queue) }

// Flush sends the queue in one round trip. If a step fails, the server does not
// carry out the steps after it.
func (l *Pipeline) Flush(ctx context.Context) (err error) {
	if len(l.queue) == 0 {
		return nil
	}
	if err := ctx.Err(); err != nil {
		return err // nothing was sent: the queue can still be cut
	}
	steps, begins := l.queue, l.Begin
	l.sent, l.queue, l.Begin = l.Length(), nil, false
	b := pgx.Batch{QueuedQueries: make([]*pgx.QueuedQuery, 0, len(steps)+1)}
	if begins {
		b.BeginTx(pgx.TxOptions{IsoLevel: pgx.ReadCommitted})
	}
	for _, s := range steps {
		b.Queue(s.sql, s.args...)
	}
	res := l.DB.SendBatch(ctx, &b)
	defer func() {
		if cerr := res.Close(); err == nil {
			err = cerr
		}
	}()
	if begins {
		l.Tx = res.Tx()
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

// Cut removes the steps from number at on from the queue. If step at was already
// sent, cut removes the whole queue and reports true.
func (l *Pipeline) Cut(at int) (sent bool) {
	if at < l.sent {
		l.queue = nil
		return true
	}
	l.queue = l.queue[:at-l.sent]
	return false
}
