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
// that is about to move the watermark, for up to pgstore.Options.LockTimeout.
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
	wait := pgwire.Millis(w.db.LockTimeout)
	err := w.db.Commits.Run(func() error { // the commit makes earlier moves durable too
		return pgwire.Retry(func() error {
			return w.db.Own.QueryRow(ctx, w.sql.own, partition.Consumer, partition.Topic, partition.Partition, partition.TopicID, start, wait).Scan(&id, &w.next, &w.epoch, &lastOffset, &w.last.LeaderEpoch, &published)
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
	_, err := db.Own.Exec(ctx, statementsOf(st).forget, consumer, topic)
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
// Offsets may be missing in between. After tx has committed, call [Watermark.Moved].
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
	err := tx.QueryRow(ctx, w.sql.move, w.partition.Consumer, w.partition.Topic, w.partition.Partition, w.partition.TopicID, w.epoch, first, next, pgwire.Millis(w.db.MaxIdleTx), min(w.next, first), s.Last.LeaderEpoch, published).Scan(&w.hasStandby, nil)
	if !errors.Is(err, pgx.ErrNoRows) {
		return pgwire.Explain("move a watermark", err)
	}
	at, err := w.read(ctx, tx)
	if err != nil {
		return pgwire.Explain("move a watermark", err)
	}
	if at < first {
		return fmt.Errorf("%w: the watermark is at %d, and was at %d: a failover has lost commits; own the partition again", ErrFenced, at, w.next)
	}
	return fmt.Errorf("%w: the watermark is at %d, and the first is %d", ErrBehind, at, first)
}

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

// Do runs fn in a transaction, and moves the watermark in it. Fn writes the effects
// of the messages of the span. It may run again, after
// a serialization failure or a deadlock, and must not end the transaction (ErrEnded).
// If COMMIT fails, or the connection breaks meanwhile, Do finds out what became of it:
// ErrBroken if nothing was committed. After any other error nothing was committed
// either, except that it is not known if the database stays out of reach, or another
// owner has the partition by then; Own tells.
func (w *Watermark) Do(ctx context.Context, s Span, fn func(ctx context.Context, tx pgx.Tx) error) error {
	pause, last := 5*time.Millisecond, error(nil)
	for range pgwire.Tries {
		committing, warnings := false, w.db.Commits.Count()
		err := w.db.App.AcquireFunc(ctx, func(c *pgxpool.Conn) error {
			var state handlertx.State
			defer func() {
				if state.Spoiled() {
					_ = c.Conn().Close(context.Background())
				}
			}()
			return pgx.BeginTxFunc(ctx, c, pgx.TxOptions{IsoLevel: pgx.ReadCommitted}, func(tx pgx.Tx) error {
				if err := lend(ctx, tx, &state, fn); err != nil {
					return err
				}
				err := w.Move(ctx, tx, s)
				committing = err == nil
				return err
			})
		})
		if err == nil && (w.hasStandby && !w.db.SeesWarnings || w.db.Commits.Count() != warnings) {
			err = w.db.Confirm(ctx)
		}
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

// lend runs fn with a transaction that it must not end.
func lend(ctx context.Context, tx pgx.Tx, state *handlertx.State, fn func(ctx context.Context, tx pgx.Tx) error) error {
	defer state.Store(true)
	conn, err := tx.Conn(), fn(ctx, handlertx.New(tx, state))
	hasEnded := handlertx.HasEnded(conn)
	err = handlertx.CloseUnread(conn, err)
	switch {
	case hasEnded:
		return fmt.Errorf("%w; it returned: %v", ErrEnded, err) //nolint:errorlint // it is not the cause
	case err != nil:
		return err
	case state.Refused():
		return ErrEnded
	case state.XID() != "" && !conn.IsClosed():
		if _, err := tx.Exec(ctx, handlertx.CheckXID, state.XID()); pgwire.Code(err) == handlertx.DivisionByZero {
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
