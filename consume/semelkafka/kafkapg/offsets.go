package kafkapg

import (
	"context"
	"errors"
	"fmt"
	"strconv"
	"sync"

	"github.com/jackc/pgx/v5"

	"github.com/semel-go/semel/consume"
	"github.com/semel-go/semel/consume/driver"
	"github.com/semel-go/semel/consume/semelkafka"
	"github.com/semel-go/semel/store/pgstore"
	"github.com/semel-go/semel/store/pgstore/pgkafka"
)

// ServeOffsets handles messages by their offsets, until ctx ends. See
// semelkafka.Source.ServeBatches for o, of which MaxAttempts counts too.
func ServeOffsets(ctx context.Context, s *semelkafka.Source, st *pgstore.Store, h Handler, o *consume.Options) error {
	if s == nil || st == nil || h == nil {
		return errors.New("kafkapg: ServeOffsets: the source, the store and the handler must not be nil")
	}
	l := &offsets{st: st, h: h, most: attempts(o), marks: map[semelkafka.Place]*mark{}}
	defer l.cares.end(ctx)
	return s.ServeBatches(ctx, l, o)
}

// offsets is a semelkafka.Ledger of watermarks.
type offsets struct {
	st   *pgstore.Store
	h    Handler
	most int

	cares cares
	mu    sync.Mutex
	marks map[semelkafka.Place]*mark
}

// mark is how far this member has come in a partition.
type mark struct {
	w      *pgkafka.Watermark // nil: lost, or in doubt; it has to be owned again
	failed int64              // the offset of a message that failed alone
	times  int                // how often
}

// attempts is how often a message has failed alone.
func (m *mark) attempts(of *consume.Message) int {
	if m.failed != of.Origin.Offset {
		return 0
	}
	return m.times
}

// Own implements semelkafka.Ledger.
func (l *offsets) Own(ctx context.Context, of semelkafka.Place, start int64) (int64, error) {
	w, err := pgkafka.Own(ctx, l.st, topicPartition(of), start)
	switch {
	case errors.Is(err, pgkafka.ErrRecreated), errors.Is(err, pgstore.ErrClosed):
		return 0, fmt.Errorf("%w: %w", driver.ErrClosed, err)
	case err != nil:
		return 0, err
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	l.marks[of] = &mark{w: w, failed: -1}
	l.cares.own(l.st, of, w.Next())
	return w.Next(), nil
}

// mark is that of a partition, which is owned again if need be.
func (l *offsets) mark(ctx context.Context, it *semelkafka.Item) (*mark, error) {
	l.mu.Lock()
	m := l.marks[it.Place]
	l.mu.Unlock()
	if m != nil && m.w != nil {
		return m, nil
	}
	before := m
	if _, err := l.Own(ctx, it.Place, it.From); err != nil {
		return nil, err
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	m = l.marks[it.Place]
	if before != nil {
		m.failed, m.times = before.failed, before.times
	}
	return m, nil
}

// Lane implements semelkafka.Ledger: nothing overtakes in a partition.
func (l *offsets) Lane(it semelkafka.Item) string {
	return it.Place.Topic + "/" + strconv.Itoa(int(it.Place.Partition))
}

// Pass implements semelkafka.Ledger.
func (l *offsets) Pass(ctx context.Context, it semelkafka.Item) error {
	m, err := l.mark(ctx, &it)
	if err != nil {
		return err
	}
	if m.w.Next() > it.Origin.Offset {
		return nil
	}
	if it.From > m.w.Next() {
		return hole(&it, m.w.Next())
	}
	err = m.w.Do(ctx, it.From, it.Origin.Offset+1, func(context.Context, pgx.Tx) error { return nil })
	if err != nil {
		m.w = nil
		return err
	}
	l.cares.known(it.Place).passed(ctx, it.Message, l.most)
	return nil
}

// hole is why a message cannot be done: what is between the watermark and it is
// not, and is never passed over.
func hole(it *semelkafka.Item, at int64) error {
	return fmt.Errorf("kafkapg: offset %d comes behind %d, but the watermark is at %d: it was set back; start again, to read from there", it.Origin.Offset, it.From, at)
}
