package pgstore

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"time"

	"github.com/jackc/pgx/v5"
)

// Errors of watermarks.
var (
	// ErrFenced: the partition has another owner by now. Nothing may be
	// committed for it any more: stop, and let the other go on.
	ErrFenced = errors.New("pgstore: the partition has another owner")
	// ErrBehind: some of the messages were done before, so that the poll
	// overlaps with them. Read from Watermark.Next on.
	ErrBehind = errors.New("pgstore: some of these offsets are done")
	// ErrRecreated: the topic is not the one that the watermark speaks of, but
	// a later one with its name, whose offsets begin anew. Decide what is to
	// be done, and call Forget.
	ErrRecreated = errors.New("pgstore: the topic was deleted and made anew")
	// ErrBroken: the connection broke while the transaction committed, and it is
	// found out that nothing was. Do it again; if it breaks each time, that may be
	// the fault of something in it.
	ErrBroken = errors.New("pgstore: the connection broke at COMMIT, and nothing was committed")
)

// TopicPartition is what one consumer reads of a topic.
type TopicPartition struct {
	Consumer string // the consumer group
	Topic    string
	// TopicID tells the topic from an earlier one with its name. Empty if the
	// broker has no such thing; then a topic that is made anew is not noticed,
	// and as many of its messages are skipped as were done of the old one.
	TopicID   string
	Partition int32
}

// Watermark is how far a consumer has come in a partition, as its owner sees it:
// a single row that moves in the transaction with the effects of the messages,
// so that each of them happens exactly once. It takes the place of a record for
// each message, for messages whose only key is their offset. It finds
// redeliveries by the broker, and not what a producer has sent twice. Make it
// with [Store.Own]. Not safe for concurrent use.
type Watermark struct {
	s     *Store
	of    TopicPartition
	epoch int64
	next  int64
}

// Own takes a partition over: whoever had it before cannot commit any more
// (ErrFenced), also if it is frozen and does not know. Call it when the broker
// assigns the partition, and read from [Watermark.Next] on, whatever the broker
// says of a committed offset. Start is the offset to begin with where there is
// no watermark yet. It waits for a transaction that is about to move the
// watermark, for up to Options.LockTimeout.
func (s *Store) Own(ctx context.Context, of TopicPartition, start int64) (*Watermark, error) {
	if s.closed.Load() {
		return nil, ErrClosed
	}
	if of.Consumer == "" || of.Topic == "" || of.Partition < 0 || start < 0 {
		return nil, fmt.Errorf("pgstore: own: Consumer and Topic must not be empty, and Partition (%d) and start (%d) not be negative", of.Partition, start)
	}
	w := &Watermark{s: s, of: of}
	var id string
	wait := millis(s.opt.LockTimeout)
	err := retry(func() error {
		return s.own.QueryRow(ctx, s.sql.own, of.Consumer, of.Topic, of.Partition, of.TopicID, start, wait).Scan(&id, &w.next, &w.epoch)
	})
	switch {
	case err != nil:
		return nil, explain("own a partition", err)
	case id != of.TopicID:
		return nil, fmt.Errorf("%w: partition %d", ErrRecreated, of.Partition)
	}
	return w, nil
}

// Forget removes the watermarks and notes that a consumer has of a topic, such as
// one that was deleted. Who owned one before cannot move the one that a later Own
// begins: its epoch is of the server's clock, so this does not hold if that was
// set back in between.
func (s *Store) Forget(ctx context.Context, consumer, topic string) error {
	if s.closed.Load() {
		return ErrClosed
	}
	_, err := s.own.Exec(ctx, s.sql.forget, consumer, topic)
	return explain("forget a topic", err)
}

// Next is the first offset that is not done, as far as this owner has come.
func (w *Watermark) Next() int64 { return w.next }

// Move says in tx, which has the effects of messages, that the offsets from
// first to before next are done. If it fails the transaction must be rolled
// back: ErrFenced, ErrBehind, or the server's error. It locks the row, so call
// it behind the effects, and commit: from then on the server ends a transaction
// that is idle for Options.MaxIdleTx. Offsets may be missing in between. When tx has
// committed, tell [Watermark.Moved].
func (w *Watermark) Move(ctx context.Context, tx pgx.Tx, first, next int64) error {
	if first < 0 || next <= first {
		return fmt.Errorf("pgstore: move a watermark: first is %d and next %d; next must be greater", first, next)
	}
	tag, err := tx.Exec(ctx, w.s.sql.move, w.of.Consumer, w.of.Topic, w.of.Partition, w.of.TopicID, w.epoch, first, next, millis(w.s.opt.MaxIdleTx))
	if err != nil || tag.RowsAffected() == 1 {
		return explain("move a watermark", err)
	}
	at, err := w.read(ctx, tx)
	if err != nil {
		return explain("move a watermark", err)
	}
	return fmt.Errorf("%w: the watermark is at %d, and the first is %d", ErrBehind, at, first)
}

// Moved tells that the transaction of a Move has committed.
func (w *Watermark) Moved(next int64) { w.next = max(w.next, next) }

// read is the watermark as it is in the database, or ErrFenced.
func (w *Watermark) read(ctx context.Context, db querier) (next int64, err error) {
	var epoch int64
	var id string
	err = db.QueryRow(ctx, w.s.sql.watermark, w.of.Consumer, w.of.Topic, w.of.Partition).Scan(&id, &next, &epoch)
	if errors.Is(err, pgx.ErrNoRows) || err == nil && (epoch != w.epoch || id != w.of.TopicID) {
		return 0, fmt.Errorf("%w: partition %d", ErrFenced, w.of.Partition)
	}
	return next, err
}

// Do runs fn in a transaction, and moves the watermark in it. Fn writes the
// effects of the messages with the offsets from first to before next. It may
// run again, after a serialization failure or a dead-lock. If the connection
// breaks while the transaction commits, Do finds out what came of it: ErrBroken
// if it was nothing. Any other error, too, says that nothing was committed, but for
// a connection that stays broken, or a partition that another has taken over by
// then, of which it is not known; Own tells.
func (w *Watermark) Do(ctx context.Context, first, next int64, fn func(ctx context.Context, tx pgx.Tx) error) error {
	pause := 5 * time.Millisecond
	for range tries {
		committing := false
		err := pgx.BeginTxFunc(ctx, w.s.app, pgx.TxOptions{IsoLevel: pgx.ReadCommitted}, func(tx pgx.Tx) error {
			if err := fn(ctx, tx); err != nil {
				return err
			}
			err := w.Move(ctx, tx, first, next)
			committing = err == nil
			return err
		})
		if err != nil && committing {
			err = w.outcome(ctx, next, err)
		}
		if err == nil {
			w.Moved(next)
		}
		if !again(err) || !sleep(ctx, pause) {
			return err
		}
		pause = pause * 3 / 2
	}
	return fmt.Errorf("pgstore: a watermark's transaction met others %d times: %w", tries, ErrBusy)
}

// outcome is the error of a COMMIT, nil if it has moved the watermark all the same.
func (w *Watermark) outcome(ctx context.Context, next int64, err error) error {
	broke := code(err) == "" || strings.HasPrefix(code(err), "08") || strings.HasPrefix(code(err), "57P")
	if !refused(err) {
		switch came, known := w.came(ctx, next); {
		case came:
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

// came reports whether a commit that got no answer has moved the watermark, if
// that can be known. The lock of the row is free only when that transaction has
// ended.
func (w *Watermark) came(ctx context.Context, next int64) (is, known bool) {
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), aftermath)
	defer cancel()
	for {
		at := int64(0)
		err := pgx.BeginTxFunc(ctx, w.s.own, pgx.TxOptions{IsoLevel: pgx.ReadCommitted}, func(tx pgx.Tx) (err error) {
			if _, err = tx.Exec(ctx, w.s.sql.waitForIt, w.of.Consumer, w.of.Topic, w.of.Partition); err == nil {
				at, err = w.read(ctx, tx)
			}
			return err
		})
		switch {
		case errors.Is(err, ErrFenced): // it is another's, who knows how far this one came
			return false, false
		case err == nil:
			return at >= next, true
		case !sleep(ctx, 50*time.Millisecond):
			return false, false
		}
	}
}
