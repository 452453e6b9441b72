package kafkapg

import (
	"context"
	"errors"
	"fmt"
	"slices"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgconn"

	"github.com/semel-go/semel"
	"github.com/semel-go/semel/consume"
	"github.com/semel-go/semel/consume/driver"
	"github.com/semel-go/semel/consume/semelkafka"
	"github.com/semel-go/semel/store/pgstore"
	"github.com/semel-go/semel/store/pgstore/pgkafka"
)

// Handle implements semelkafka.Ledger.
func (l *offsets) Handle(ctx context.Context, batch []semelkafka.Item) []driver.Result {
	r := &offsetsRun{offsets: l, batch: batch, ends: make([]driver.Result, len(batch)), blocked: map[semelkafka.Place]error{}}
	together := make([]int, 0, len(batch))
	parts := func() {
		for part := range slices.Chunk(together, semelkafka.MaxBatch) {
			r.part(ctx, part)
		}
		together = together[:0]
	}
	for i := range batch {
		switch c, err := r.begin(ctx, i); {
		case err != nil:
			r.block(batch[i].Place, []int{i}, &semel.Error{Reason: semel.ErrUnavailable, Operation: operation(batch[i].Place), Cause: err})
		case c == nil:
			together = append(together, i)
		default:
			parts() // what is before it comes first
			r.care = c
			r.part(ctx, []int{i})
			r.care = nil
		}
	}
	parts()
	return r.ends
}

// offsetsRun is one batch.
type offsetsRun struct {
	*offsets
	batch   []semelkafka.Item
	ends    []driver.Result
	blocked map[semelkafka.Place]error // why nothing more of a partition is done in this batch
	fast    bool                       // no care is to be taken with the partition that begin saw last
	care    *care                      // of the message that is handled alone; nil: there is none
}

// span is what a transaction does of one partition.
type span struct {
	m           *mark
	place       semelkafka.Place
	first, next int64
	items       []int
}

// part does some of the messages, in one transaction or, if that cannot be, in
// several.
func (r *offsetsRun) part(ctx context.Context, which []int) {
	for {
		spans := r.spans(ctx, which)
		if len(spans) == 0 {
			return
		}
		lost, err := r.noted(ctx, spans)
		var items []int
		for _, s := range spans {
			items = append(items, s.items...)
		}
		switch {
		case err == nil:
			return
		case r.untried(spans[0], err):
			return
		case lost != nil && errors.Is(err, pgkafka.ErrBehind):
			lost.m.w = nil // some of it was done, by a commit that got no answer: own it again, and go on behind that
			which = items
		case lost != nil && errors.Is(err, pgkafka.ErrFenced):
			lost.m.w = nil
			r.block(lost.place, lost.items, &semel.Error{Reason: semel.ErrLeaseLost, Operation: operation(lost.place), Cause: err})
			which = items
		case !divides(err), ctx.Err() != nil: // it was interrupted, whatever the handler says: no message is to blame
			for _, s := range spans {
				s.m.w = nil
				r.block(s.place, s.items, &semel.Error{Reason: semel.ErrUnavailable, Operation: operation(s.place), Cause: err})
			}
			return
		case len(items) > 1:
			r.part(ctx, items[:len(items)/2])
			r.part(ctx, items[len(items)/2:])
			return
		default:
			r.poison(ctx, spans[0], err)
			return
		}
	}
}

// spans are the partitions of messages, with what is still to be done of each.
func (r *offsetsRun) spans(ctx context.Context, which []int) (spans []*span) {
	for _, i := range which {
		it := &r.batch[i]
		if err := r.blocked[it.Place]; err != nil {
			r.ends[i].Err = err
			continue
		}
		m, err := r.mark(ctx, it)
		if err != nil {
			r.block(it.Place, []int{i}, &semel.Error{Reason: semel.ErrUnavailable, Operation: operation(it.Place), Cause: err})
			continue
		}
		if it.Origin.Offset < m.w.Next() {
			r.ends[i] = driver.Result{Replayed: true}
			continue
		}
		n := len(spans)
		if n == 0 || spans[n-1].place != it.Place {
			spans = append(spans, &span{m: m, place: it.Place, first: m.w.Next(), next: m.w.Next()})
			n++
		}
		s := spans[n-1]
		if it.From > s.next {
			r.block(it.Place, []int{i}, &semel.Error{Reason: semel.ErrUnavailable, Operation: operation(it.Place), Cause: hole(it, s.next)})
			continue
		}
		s.items, s.next = append(s.items, i), it.Origin.Offset+1
	}
	return slices.DeleteFunc(spans, func(s *span) bool { return len(s.items) == 0 })
}

// block ends messages, and those behind them, with an error.
func (r *offsetsRun) block(of semelkafka.Place, items []int, err error) {
	for _, i := range items {
		r.ends[i] = driver.Result{Err: err}
	}
	if r.blocked[of] == nil {
		r.blocked[of] = err
	}
}

func operation(of semelkafka.Place) string { return string(of.Group) }

// try does all spans in one transaction. The one that is told with an error is
// whose watermark did not move.
func (r *offsetsRun) try(ctx context.Context, spans []*span) (lost *span, err error) {
	var ms []*consume.Message
	for _, s := range spans {
		for _, i := range s.items {
			ms = append(ms, r.batch[i].Message)
		}
	}
	last := spans[len(spans)-1]
	err = last.m.w.Do(ctx, last.first, last.next, func(ctx context.Context, tx pgx.Tx) error {
		lost = nil
		if err := r.h.safely(ctx, open{tx}, ms); err != nil {
			return &handlerError{err, tx.Conn().IsClosed(), refuses(err)}
		}
		for _, s := range spans[:len(spans)-1] {
			if err := s.m.w.Move(ctx, tx, s.first, s.next); err != nil {
				lost = s
				return err
			}
		}
		lost = last
		return nil
	})
	if err == nil {
		for _, s := range spans {
			s.m.w.Moved(s.next)
		}
	}
	return lost, err
}

// handlerError is what a handler returned.
type handlerError struct {
	error
	broken bool // there was no connection any more
	down   bool // the server is out of order
}

func (e *handlerError) Unwrap() error { return e.error }

// divides reports whether an error may be of one message among others: the
// handler's, or what the server said when it was to commit.
func divides(err error) bool {
	if h, ok := errors.AsType[*handlerError](err); ok {
		return !h.down
	}
	return errors.Is(err, pgstore.ErrBusy) || errors.Is(err, pgkafka.ErrBroken) || pgkafka.RefusedForContent(err) // busy: a smaller one may get through
}

// refuses reports whether the server is out of order, whatever the message:
// it is out of something, or a standby by now.
func refuses(err error) bool {
	p, ok := errors.AsType[*pgconn.PgError](err)
	return ok && (p.Code == "25006" || len(p.Code) == 5 && (p.Code[:2] == "53" || p.Code[:2] == "58"))
}

// poison ends a message that failed alone; what is behind it waits.
func (r *offsetsRun) poison(ctx context.Context, s *span, err error) {
	i := s.items[0]
	h, ok := errors.AsType[*handlerError](err)
	if (ok && h.broken || errors.Is(err, pgkafka.ErrBroken)) && !r.answers(ctx, s) {
		r.block(s.place, s.items, &semel.Error{Reason: semel.ErrUnavailable, Operation: operation(s.place), Cause: err})
		return
	}
	if errors.Is(err, pgstore.ErrBusy) { // others are in its way
		r.block(s.place, s.items, &semel.Error{Reason: semel.ErrInProgress, Operation: operation(s.place), Cause: err})
		return
	}
	m := r.batch[i].Message
	s.m.failed, s.m.times = m.Origin.Offset, s.m.attempts(m)+1
	n := s.m.times + r.care.died(m)
	if ok {
		err = h.error
	} else {
		err = fmt.Errorf("the transaction: %w", err)
	}
	r.ends[i] = driver.Result{Err: limited(err, n, r.most), FromHandler: true, Attempt: n}
	r.blocked[s.place] = waits(operation(s.place))
}

// answers reports whether the database takes a write: to own the partition again.
// If it does, what broke the connection of a message that was alone may be that
// message; if not, it is none's fault.
func (r *offsetsRun) answers(ctx context.Context, s *span) bool {
	s.m.w = nil
	m, err := r.mark(ctx, &r.batch[s.items[0]])
	if err == nil {
		s.m = m
	}
	return err == nil
}

// open is a transaction that its handler can neither commit nor roll back.
type open struct{ pgx.Tx }

var errOurs = errors.New("kafkapg: the transaction is not the handler's to end")

// Commit implements pgx.Tx.
func (open) Commit(context.Context) error { return errOurs }

// Rollback implements pgx.Tx.
func (open) Rollback(context.Context) error { return errOurs }
