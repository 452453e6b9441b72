package pgstore

import (
	"context"
	crand "crypto/rand"
	"errors"
	"fmt"
	"maps"
	"slices"

	"github.com/jackc/pgx/v5/pgtype"
)

// Note is what one member of a consumer leaves about a partition for those who
// come after it, in a row that is committed by itself: of a member that dies in
// the transaction of its effects nothing else is left. It says where members have
// begun, and which message one has tried alone. A note is a hint, and decides
// nothing: no effect depends on it. Make it with [Store.Note]. Not safe for
// concurrent use.
type Note struct {
	s     *Store
	of    TopicPartition
	owner pgtype.UUID
	tried map[int64]int64
	owed  map[int64]int64 // tries that may be noted, and are to be taken back
}

// Note is a new member's of a partition. It does no I/O.
func (s *Store) Note(of TopicPartition) *Note {
	n := &Note{s: s, of: of, owner: pgtype.UUID{Valid: true}, tried: map[int64]int64{}, owed: map[int64]int64{}}
	_, _ = crand.Read(n.owner.Bytes[:]) // it never fails
	return n
}

// Begin says that the member begins to handle messages at an offset. Times is how
// many members in a row have begun at just this one, this one included, and not
// called End: if it grows, none of them gets past what follows. A member that
// begins there once more, with no other in between, counts once. From then on who
// had begun before cannot write (ErrFenced).
func (n *Note) Begin(ctx context.Context, at int64) (times int, err error) {
	switch {
	case n.s.closed.Load():
		return 0, ErrClosed
	case n.of.Consumer == "" || n.of.Topic == "" || n.of.Partition < 0 || at < 0:
		return 0, fmt.Errorf("pgstore: note: Consumer and Topic must not be empty, and Partition (%d) and the offset (%d) not be negative", n.of.Partition, at)
	}
	var tried []int64
	err = retry(func() error {
		return n.s.own.QueryRow(ctx, n.s.sql.noteBegin, n.of.Consumer, n.of.Topic, n.of.Partition, n.of.TopicID, n.owner, at, millis(n.s.opt.LockTimeout)).Scan(&times, &tried)
	})
	if err != nil {
		return 0, explain("note a beginning", err)
	}
	clear(n.tried)
	for of := range slices.Chunk(tried, 2) {
		if len(of) == 2 && of[0] >= at && of[1] > n.owed[of[0]] { // what is before it is done
			n.tried[of[0]] = of[1] - n.owed[of[0]]
		}
	}
	if len(n.owed) > 0 {
		err = n.write(ctx, n.s.sql.noteTried)
	}
	return times, err
}

// Tries is how many tries of a message have begun and are not known to have
// ended: whoever made them has died, or was cut off.
func (n *Note) Tries(offset int64) int { return int(n.tried[offset]) }

// Open reports whether any message has such tries.
func (n *Note) Open() bool { return len(n.tried) > 0 }

// Try says that one more try of a message begins. On an error none may:
// ErrFenced, if another has begun since, or the server's.
func (n *Note) Try(ctx context.Context, offset int64) error {
	n.tried[offset]++
	err := n.write(ctx, n.s.sql.noteTried)
	if err != nil {
		n.takeBack(offset)
		n.owe(offset, err)
	}
	return err
}

// Ended says that the last try of a message has ended, and that the message is to
// be tried again. If it fails, the next that is written says so.
func (n *Note) Ended(ctx context.Context, offset int64) error {
	n.takeBack(offset)
	err := n.write(ctx, n.s.sql.noteTried)
	if err != nil {
		n.owed[offset]++
	}
	return err
}

// owe remembers a try that may have been noted, though the server did not say so.
func (n *Note) owe(offset int64, err error) {
	if !errors.Is(err, ErrFenced) && !refused(err) {
		n.owed[offset]++
	}
}

func (n *Note) takeBack(offset int64) {
	if n.tried[offset]--; n.tried[offset] <= 0 {
		delete(n.tried, offset)
	}
}

// Done forgets the tries of a message that will not be tried again. The next
// writing says so.
func (n *Note) Done(offset int64) { delete(n.tried, offset) }

// End says that the member ends in order, and that its Begin does not count.
func (n *Note) End(ctx context.Context) error { return n.write(ctx, n.s.sql.noteEnd) }

func (n *Note) write(ctx context.Context, sql string) error {
	if n.s.closed.Load() {
		return ErrClosed
	}
	tried := make([]int64, 0, 2*len(n.tried))
	for _, offset := range slices.Sorted(maps.Keys(n.tried)) {
		tried = append(tried, offset, n.tried[offset])
	}
	tag, err := n.s.own.Exec(ctx, sql, n.of.Consumer, n.of.Topic, n.of.Partition, n.of.TopicID, n.owner, tried, millis(n.s.opt.LockTimeout))
	if err == nil && tag.RowsAffected() == 0 {
		err = fmt.Errorf("%w: partition %d", ErrFenced, n.of.Partition)
	}
	if err == nil {
		clear(n.owed)
	}
	if err == nil || errors.Is(err, ErrFenced) {
		return err
	}
	return explain("note a try", err)
}
