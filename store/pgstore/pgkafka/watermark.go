package pgkafka

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/semel-go/semel/store/pgstore"
	"github.com/semel-go/semel/store/pgstore/internal/pgwire"
)

// Errors of watermarks and crash markers.
var (
	// ErrFenced: the partition has another owner. Nothing may be committed for it
	// any more: stop, and let the other owner go on.
	ErrFenced = errors.New("pgkafka: the partition has another owner")
	// ErrBehind: some of the messages were done before, so the poll overlaps with
	// them. Read from Watermark.Next on.
	ErrBehind = errors.New("pgkafka: some of these offsets are done")
	// ErrRecreated: the watermark is of an earlier topic with this name, and the
	// offsets of the topic begin again. Decide what is to be done, and call Forget.
	ErrRecreated = errors.New("pgkafka: the topic was deleted and made again")
	// ErrBroken: the connection broke while the transaction committed, and nothing
	// was committed. Do it again; if it breaks each time, that may be the fault of
	// a message in it.
	ErrBroken = errors.New("pgkafka: the connection broke at COMMIT, and nothing was committed")
)

// RefusedForContent reports whether the server refused a statement or COMMIT because
// of the content of the transaction: data, constraints, limits, or an error that a trigger
// raised. If the transaction is of many messages, the cause may be one of them, so
// try halves. It is false for faults of the server, the connection, rights or tables,
// for locks and rows of other transactions, for other errors, and for nil.
func RefusedForContent(err error) bool { return pgwire.RefusedForContent(err) }

// TopicPartition is one partition of a topic, as one consumer reads it.
type TopicPartition struct {
	Consumer string // the consumer group
	Topic    string
	// TopicID tells the topic from an earlier one with its name. It is empty if the
	// broker has no such id. Then a topic that was deleted and made again is not
	// noticed, and as many of its messages are skipped as were done of the old one.
	TopicID   string
	Partition int32
}

// check refuses a partition, or an offset, that cannot be.
func (tp *TopicPartition) check(what string, offset int64) error {
	if tp.Consumer == "" || tp.Topic == "" || tp.Partition < 0 || offset < 0 {
		return fmt.Errorf("pgkafka: %s: Consumer and Topic must not be empty, and Partition (%d) and the offset (%d) not be negative", what, tp.Partition, offset)
	}
	return nil
}

// Watermark is how far a consumer has come in a partition, as its owner sees it: one
// row, which moves in the transaction of the effects, so that each message takes
// effect exactly once. It replaces a record for each message, if the only key of the
// messages is their offset. It finds redeliveries by the broker, but not messages
// that a producer has sent twice. Make it with [Own]. Not safe for concurrent use.
type Watermark struct {
	db        *pgwire.Database
	sql       *statements
	partition TopicPartition
	epoch     int64
	next      int64
}

// Own takes a partition over. The owner before cannot commit any more (ErrFenced),
// even if it is frozen and does not know. Call Own when the broker assigns the
// partition, and read from [Watermark.Next] on, whatever offset is committed at the
// broker. If there is no watermark, it begins at start. Own waits for a transaction
// that is about to move the watermark, for up to pgstore.Options.LockTimeout.
func Own(ctx context.Context, st *pgstore.Store, partition TopicPartition, start int64) (*Watermark, error) {
	w := &Watermark{db: st.Database(), sql: statementsOf(st), partition: partition}
	if w.db.Closed() {
		return nil, pgstore.ErrClosed
	}
	if err := partition.check("own", start); err != nil {
		return nil, err
	}
	var id string
	wait := pgwire.Millis(w.db.LockTimeout)
	err := pgwire.Retry(func() error {
		return w.db.Own.QueryRow(ctx, w.sql.own, partition.Consumer, partition.Topic, partition.Partition, partition.TopicID, start, wait).Scan(&id, &w.next, &w.epoch)
	})
	switch {
	case err != nil:
		return nil, pgwire.Explain("own a partition", err)
	case id != partition.TopicID:
		return nil, fmt.Errorf("%w: partition %d", ErrRecreated, partition.Partition)
	}
	return w, nil
}

// Forget removes the watermarks and crash markers of a consumer for a topic, for
// example of a topic that was deleted. An owner from before cannot move a watermark
// that a later Own makes, because its epoch is the server's time; this does not hold
// if the server's clock was set back in between.
func Forget(ctx context.Context, st *pgstore.Store, consumer, topic string) error {
	db := st.Database()
	if db.Closed() {
		return pgstore.ErrClosed
	}
	_, err := db.Own.Exec(ctx, statementsOf(st).forget, consumer, topic)
	return pgwire.Explain("forget a topic", err)
}

// Next is the first offset that is not done, as far as this owner knows.
func (w *Watermark) Next() int64 { return w.next }

// Move writes in tx, the transaction of the effects, that the offsets from first to
// before next are done. If it fails, roll tx back: ErrFenced, ErrBehind, or an error
// of the server. Move locks the row, so call it after the effects, and commit soon:
// the server ends a transaction that then idles for pgstore.Options.MaxIdleTx.
// Offsets may be missing in between. After tx has committed, call [Watermark.Moved].
func (w *Watermark) Move(ctx context.Context, tx pgx.Tx, first, next int64) error {
	if first < 0 || next <= first {
		return fmt.Errorf("pgkafka: move a watermark: first is %d and next %d; next must be greater", first, next)
	}
	tag, err := tx.Exec(ctx, w.sql.move, w.partition.Consumer, w.partition.Topic, w.partition.Partition, w.partition.TopicID, w.epoch, first, next, pgwire.Millis(w.db.MaxIdleTx))
	if err != nil || tag.RowsAffected() == 1 {
		return pgwire.Explain("move a watermark", err)
	}
	at, err := w.read(ctx, tx)
	if err != nil {
		return pgwire.Explain("move a watermark", err)
	}
	return fmt.Errorf("%w: the watermark is at %d, and the first is %d", ErrBehind, at, first)
}

// Moved tells the Watermark that the transaction of a Move has committed.
func (w *Watermark) Moved(next int64) { w.next = max(w.next, next) }

// read is the watermark as it is in the database, or ErrFenced.
func (w *Watermark) read(ctx context.Context, db pgwire.Querier) (next int64, err error) {
	var epoch int64
	var id string
	err = db.QueryRow(ctx, w.sql.read, w.partition.Consumer, w.partition.Topic, w.partition.Partition).Scan(&id, &next, &epoch)
	if errors.Is(err, pgx.ErrNoRows) || err == nil && (epoch != w.epoch || id != w.partition.TopicID) {
		return 0, fmt.Errorf("%w: partition %d", ErrFenced, w.partition.Partition)
	}
	return next, err
}

// Do runs fn in a transaction, and moves the watermark in it. Fn writes the effects
// of the messages with the offsets from first to before next. It may run again, after
// a serialization failure or a deadlock. If the connection breaks during COMMIT, Do
// finds out what became of it: ErrBroken if nothing was committed. After any other
// error nothing was committed either, except that it is not known if the database
// stays out of reach, or another owner has the partition by then; Own tells.
func (w *Watermark) Do(ctx context.Context, first, next int64, fn func(ctx context.Context, tx pgx.Tx) error) error {
	pause := 5 * time.Millisecond
	for range pgwire.Tries {
		committing := false
		err := pgx.BeginTxFunc(ctx, w.db.App, pgx.TxOptions{IsoLevel: pgx.ReadCommitted}, func(tx pgx.Tx) error {
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
		if !pgwire.Again(err) || !pgwire.Sleep(ctx, pause) {
			return err
		}
		pause = pause * 3 / 2
	}
	return fmt.Errorf("pgkafka: the transaction of a watermark conflicted with others %d times: %w", pgwire.Tries, pgstore.ErrBusy)
}

// outcome is the error of a COMMIT, or nil if the COMMIT has moved the watermark.
func (w *Watermark) outcome(ctx context.Context, next int64, err error) error {
	broke := pgwire.Code(err) == "" || strings.HasPrefix(pgwire.Code(err), "08") || strings.HasPrefix(pgwire.Code(err), "57P")
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

// commitTimeout limits how long hasMoved asks the server.
const commitTimeout = 10 * time.Second

// hasMoved reports whether a COMMIT without an answer has moved the watermark, if
// that can be known. It waits for the lock of the row, which the transaction holds
// until it has ended.
func (w *Watermark) hasMoved(ctx context.Context, next int64) (moved, known bool) {
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), commitTimeout)
	defer cancel()
	for {
		at := int64(0)
		err := pgx.BeginTxFunc(ctx, w.db.Own, pgx.TxOptions{IsoLevel: pgx.ReadCommitted}, func(tx pgx.Tx) (err error) {
			if _, err = tx.Exec(ctx, w.sql.lockRow, w.partition.Consumer, w.partition.Topic, w.partition.Partition); err == nil {
				at, err = w.read(ctx, tx)
			}
			return err
		})
		switch {
		case errors.Is(err, ErrFenced): // it is another's, who knows how far this one came
			return false, false
		case err == nil:
			return at >= next, true
		case !pgwire.Sleep(ctx, 50*time.Millisecond):
			return false, false
		}
	}
}
