package pgkafka

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/semel-go/semel/store/pgstore"
	"github.com/semel-go/semel/store/pgstore/internal/handlertx"
	"github.com/semel-go/semel/store/pgstore/internal/pgwire"
)

// Errors of watermarks and crash markers.
var (
	// ErrFenced: the partition has another owner, or the database has lost commits of
	// this one in a failover. Nothing may be committed for it any more: stop, and let
	// the other owner go on, or own the partition again.
	ErrFenced = errors.New("pgkafka: the partition has another owner")
	// ErrBehind: some of the messages were done before, so the poll overlaps with
	// them. Read from Watermark.Next on.
	ErrBehind = errors.New("pgkafka: some of these offsets are done")
	// ErrRecreated: the watermark is of an earlier topic with this name, and the
	// offsets of the topic begin again. Decide what is to be done, and call Forget.
	ErrRecreated = errors.New("pgkafka: the topic was deleted and made again")
	// ErrBroken: the server refused COMMIT, or the connection broke meanwhile, and
	// nothing was committed. Do it again; if it fails each time, although the server
	// accepts other writes, that may be the fault of a message in it.
	ErrBroken = errors.New("pgkafka: COMMIT failed, and nothing was committed")
	// ErrEnded: the handler has ended the transaction itself, which it must not. If it
	// has committed, its effects are there, but the watermark has not moved.
	ErrEnded = handlertx.ErrEnded
	// ErrUnread: the handler has left rows of a query open, so that the watermark could not
	// move.
	ErrUnread = handlertx.ErrUnread
	// ErrIdle: the handler has left its transaction idle for longer than
	// pgstore.Options.MaxIdleTx, so that the server ended it, and nothing was committed.
	ErrIdle = errors.New("pgkafka: the handler left its transaction idle")
)

// RefusedForContent reports whether the server refused a statement or COMMIT because
// of the content of the transaction: data, constraints, limits, or an error that a trigger
// raised. If the transaction is of many messages, the cause may be one of them, so
// try halves. It is false for faults of the server, the connection, rights or tables,
// for locks and rows of other transactions, for other errors, and for nil.
func RefusedForContent(err error) bool { return pgwire.RefusedForContent(err) }

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
	last      LastMessage
	// hasStandby: commits wait for a synchronous standby, as the last Move has seen.
	hasStandby bool
}

// Own takes a partition over. The owner before cannot commit any more (ErrFenced),
// even if it is frozen and does not know. Call Own when the broker assigns the
// partition, and read from [Watermark.Next] on, whatever offset is committed at the
// broker. If there is no watermark, it begins at start. Own waits for a transaction
// that is about to move the watermark, for up to pgstore.Options.LockTimeout or four
// fifths of pgstore.Options.StoreTimeout, and then returns pgstore.ErrBusy. If the server
// does not answer within StoreTimeout, Own returns an error, and may be called again.
func Own(ctx context.Context, st *pgstore.Store, partition TopicPartition, start int64) (*Watermark, error) {
	w := &Watermark{db: pgwire.DatabaseOf(st), sql: statementsOf(st), partition: partition}
	if w.db.Closed() {
		return nil, pgstore.ErrClosed
	}
	if err := partition.check("own", start); err != nil {
		return nil, err
	}
	var id string
	var lastOffset, published int64
	err := w.db.Limited(ctx, func(ctx context.Context) error {
		return w.db.Commits.Run(func() error { // the commit makes earlier moves durable too
			return pgwire.Retry(func() error {
				return w.db.Own.QueryRow(ctx, w.sql.own, partition.Consumer, partition.Topic, partition.Partition, partition.TopicID, start, w.db.LockWait()).Scan(&id, &w.next, &w.epoch, &lastOffset, &w.last.LeaderEpoch, &published)
			})
		})
	})
	switch {
	case err != nil:
		return nil, pgwire.Explain("own a partition", err)
	case id != partition.TopicID:
		return nil, fmt.Errorf("%w: topic %q, partition %d: offset %d was reached in topic id %q, and the topic has the id %q now; its messages are different ones: "+
			"decide where to begin, and call Forget", ErrRecreated, partition.Topic, partition.Partition, w.next, id, partition.TopicID)
	}
	if w.last.Published = time.UnixMilli(published); published == 0 || lastOffset != w.next-1 {
		w.last = LastMessage{}
	}
	return w, nil
}

// Forget removes the watermarks and crash markers of a consumer for a topic, for
// example of a topic that was deleted. An owner from before cannot move a watermark
// that a later Own makes, because its epoch is the server's time; this does not hold
// if the server's clock was set back in between.
func Forget(ctx context.Context, st *pgstore.Store, consumer, topic string) error {
	db := pgwire.DatabaseOf(st)
	if db.Closed() {
		return pgstore.ErrClosed
	}
	err := db.Limited(ctx, func(ctx context.Context) error {
		_, err := db.Own.Exec(ctx, statementsOf(st).forget, consumer, topic)
		return err
	})
	return pgwire.Explain("forget a topic", err)
}

// Next is the first offset that is not done, as far as this owner knows.
func (w *Watermark) Next() int64 { return w.next }

// Last is the message before Next. Before you read on, compare it with the message
// that the broker has there.
func (w *Watermark) Last() LastMessage { return w.last }

// Move writes in tx, the transaction of the effects, that the messages of a span are
// done. If it fails, roll tx back: ErrFenced, ErrBehind, or an error
// of the server. Move locks the row, so call it after the effects, and commit soon:
// the server ends a transaction that then idles for pgstore.Options.MaxIdleTx.
// Offsets may be missing in between. After tx has committed, call [Watermark.Moved]. If the
// server does not answer Move within pgstore.Options.StoreTimeout, the connection is closed.
func (w *Watermark) Move(ctx context.Context, tx pgx.Tx, s Span) error {
	first, next := s.First, s.Next
	if first < 0 || next <= first {
		return fmt.Errorf("pgkafka: move a watermark: first is %d and next %d; next must be greater", first, next)
	}
	if handlertx.IsUnread(handlertx.ConnOf(tx)) {
		return ErrUnread
	}
	published := int64(0)
	if !s.Last.Published.IsZero() {
		published = s.Last.Published.UnixMilli()
	}
	var at int64
	err := w.db.Limited(ctx, func(ctx context.Context) error {
		err := tx.QueryRow(ctx, w.sql.move, w.partition.Consumer, w.partition.Topic, w.partition.Partition, w.partition.TopicID, w.epoch, first, next, pgwire.Millis(w.db.MaxIdleTx), min(w.next, first), s.Last.LeaderEpoch, published).Scan(&w.hasStandby, nil)
		if !errors.Is(err, pgx.ErrNoRows) {
			return err
		}
		if at, err = w.read(ctx, tx); err != nil {
			return err
		}
		return errNotMoved
	})
	switch {
	case !errors.Is(err, errNotMoved):
		return pgwire.Explain("move a watermark", err)
	case at < first:
		return fmt.Errorf("%w: the watermark is at %d, and was at %d: a failover has lost commits; own the partition again", ErrFenced, at, w.next)
	}
	return fmt.Errorf("%w: the watermark is at %d, and the first is %d", ErrBehind, at, first)
}

// errNotMoved: the watermark is elsewhere.
var errNotMoved = errors.New("the watermark has not moved")

// Moved tells the Watermark that the transaction of a Move has committed.
func (w *Watermark) Moved(s Span) {
	if s.Next > w.next {
		w.next, w.last = s.Next, s.Last
	}
}

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
