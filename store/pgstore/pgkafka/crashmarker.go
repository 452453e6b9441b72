package pgkafka

import (
	"context"
	crand "crypto/rand"
	"errors"
	"fmt"
	"maps"
	"slices"

	"github.com/jackc/pgx/v5/pgconn"
	"github.com/jackc/pgx/v5/pgtype"

	"github.com/semel-go/semel/store/pgstore"
	"github.com/semel-go/semel/store/pgstore/internal/pgwire"
)

// CrashMarker finds messages that kill the process of a consumer. Each member of the
// consumer group writes into one row of the partition where it starts, and which
// message it tries alone. The row is committed outside of the transactions of
// effects, which die with the process. A crash marker is a hint: no effect depends on
// it. Each request to the server has pgstore.Options.StoreTimeout. Make it with
// [NewCrashMarker]. Not safe for concurrent use.
type CrashMarker struct {
	db        *pgwire.Database
	sql       *statements
	partition TopicPartition
	member    pgtype.UUID
	tries     map[int64]int64 // by offset: tries without an end
	excess    map[int64]int64 // by offset: tries that may be in the row, and have ended or were not made
}

// NewCrashMarker makes the crash marker of a new member for a partition. It does no I/O.
func NewCrashMarker(st *pgstore.Store, partition TopicPartition) *CrashMarker {
	n := &CrashMarker{
		db: pgwire.DatabaseOf(st), sql: statementsOf(st), partition: partition, member: pgtype.UUID{Valid: true},
		tries: map[int64]int64{}, excess: map[int64]int64{},
	}
	_, _ = crand.Read(n.member.Bytes[:]) // it never fails
	return n
}

// Begin writes that the member starts to handle messages at an offset. It returns how
// many members in a row, this one included, have started at exactly this offset and
// not called End. If that number grows, no member gets past the messages that follow.
// A member that starts there again, with no other in between, counts once. Members
// that have started before cannot write from now on (ErrFenced).
func (n *CrashMarker) Begin(ctx context.Context, offset int64) (starts int, err error) {
	if n.db.Closed() {
		return 0, pgstore.ErrClosed
	}
	if err := n.partition.check("crash marker", offset); err != nil {
		return 0, err
	}
	var row []int64 // offset, count, offset, count …
	err = n.db.Limited(ctx, func(ctx context.Context) error {
		return pgwire.Retry(func() error {
			tp := &n.partition
			return n.db.Own.QueryRow(ctx, n.sql.begin, tp.Consumer, tp.Topic, tp.Partition, tp.TopicID, n.member, offset, n.db.LockWait()).Scan(&starts, &row)
		})
	})
	if err != nil {
		return 0, pgwire.Explain("begin a crash marker", err)
	}
	clear(n.tries)
	for pair := range slices.Chunk(row, 2) {
		if len(pair) == 2 && pair[0] >= offset && pair[1] > n.excess[pair[0]] { // messages before offset are done
			n.tries[pair[0]] = pair[1] - n.excess[pair[0]]
		}
	}
	if len(n.excess) > 0 {
		err = n.write(ctx, n.sql.setTries)
	}
	return starts, err
}

// Tries is how many tries of a message have no known end: the process died in them,
// or lost its connection.
func (n *CrashMarker) Tries(offset int64) int { return int(n.tries[offset]) }

// HasTries reports whether any message has tries without an end.
func (n *CrashMarker) HasTries() bool { return len(n.tries) > 0 }

// Try writes that a try of a message begins. If it fails, do not make the try:
// ErrFenced if another member has started since, or an error of the server.
func (n *CrashMarker) Try(ctx context.Context, offset int64) error {
	n.tries[offset]++
	err := n.write(ctx, n.sql.setTries)
	if err != nil {
		n.takeBack(offset)
		if !errors.Is(err, ErrFenced) && !pgwire.Refused(err) { // it may be written all the same
			n.excess[offset]++
		}
	}
	return err
}

// Ended writes that the last try of a message has ended, and that the message will be
// tried again. If it fails, the next write corrects the row.
func (n *CrashMarker) Ended(ctx context.Context, offset int64) error {
	n.takeBack(offset)
	err := n.write(ctx, n.sql.setTries)
	if err != nil {
		n.excess[offset]++
	}
	return err
}

func (n *CrashMarker) takeBack(offset int64) {
	if n.tries[offset]--; n.tries[offset] <= 0 {
		delete(n.tries, offset)
	}
}

// Done forgets the tries of a message that will not be tried again. The next write
// says so.
func (n *CrashMarker) Done(offset int64) { delete(n.tries, offset) }

// End writes that the member ends in order, so that its Begin does not count.
func (n *CrashMarker) End(ctx context.Context) error { return n.write(ctx, n.sql.end) }

func (n *CrashMarker) write(ctx context.Context, sql string) error {
	if n.db.Closed() {
		return pgstore.ErrClosed
	}
	row := make([]int64, 0, 2*len(n.tries))
	for _, offset := range slices.Sorted(maps.Keys(n.tries)) {
		row = append(row, offset, n.tries[offset])
	}
	tp := &n.partition
	var tag pgconn.CommandTag
	err := n.db.Limited(ctx, func(ctx context.Context) (err error) {
		tag, err = n.db.Own.Exec(ctx, sql, tp.Consumer, tp.Topic, tp.Partition, tp.TopicID, n.member, row, n.db.LockWait())
		return err
	})
	if err == nil && tag.RowsAffected() == 0 {
		err = fmt.Errorf("%w: partition %d", ErrFenced, tp.Partition)
	}
	if err == nil {
		clear(n.excess)
	}
	if err == nil || errors.Is(err, ErrFenced) {
		return err
	}
	return pgwire.Explain("write a crash marker", err)
}
