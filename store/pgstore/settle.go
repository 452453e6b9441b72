package pgstore

import (
	"context"
	"errors"
	"slices"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgtype"

	"github.com/semel-go/semel/store"
	"github.com/semel-go/semel/store/coalesce"
	"github.com/semel-go/semel/store/pgstore/internal/pgwire"
)

type (
	settleLane = coalesce.Lane[*settleRequest, struct{}]
	settleItem = coalesce.Item[*settleRequest, struct{}]
)

// settleRequest is one settlement, as its statement takes it.
type settleRequest struct {
	lease *store.Lease
	t     *store.Settlement
	id    pgtype.UUID
	end   end
}

func newSettleRequest(l *store.Lease, t *store.Settlement) (*settleRequest, error) {
	e, err := newEnd(t.State, &t.Outcome, t.Wait, t.Keep)
	return &settleRequest{l, t, idOf(l.Key), e}, err
}

// errNotHeld: no row was as the lease says. It may have been settled before.
var errNotHeld = errors.New("not held")

func (s *Store) newSettleLane() *settleLane {
	return coalesce.New(s.flushSettles, &coalesce.Options[*settleRequest]{
		MaxBatch: s.opt.MaxBatch, Company: company, Flushers: s.opt.Flushers,
		Conflict: func(r **settleRequest) uint64 { return numberOf((*r).id) },
	})
}

// settleTry is how long a round trip of settlements may take: half of what a
// Guard has for one. A connection that hangs is given up then, and they go again,
// on another. Else it would cost their outcomes, though the server is well.
const settleTry = 5 * time.Second

// flushSettles sends the settlements of a batch in one round trip.
func (s *Store) flushSettles(ctx context.Context, batch []*settleItem) {
	ctx, cancel := context.WithTimeout(ctx, s.opt.settleTry)
	defer cancel()
	if len(batch) == 1 {
		it := batch[0]
		it.Err = s.quick.settle(ctx, it.Req)
		if pgwire.Code(it.Err) == pgwire.LockNotAvailable {
			it.Err = errLocked
		}
		return
	}
	byID := make(map[pgtype.UUID]*settleItem, len(batch))
	size := 0
	for _, it := range batch {
		it.Err = errNotHeld
		byID[it.Req.id] = it
		size += len(it.Req.end.body) + len(it.Req.end.header) + len(it.Req.t.Error)
	}
	if size > maxOutcome { // more than a message may hold, though each is less
		for _, it := range batch {
			it.Err = errAlone
		}
		return
	}
	var id pgtype.UUID
	to := []any{&id}
	err := s.sendBatch(ctx, s.sql.settles, settleArrays(batch), func(rows pgx.Rows) error {
		if err := rows.Scan(to...); err != nil {
			return err
		}
		if it := byID[id]; it != nil {
			it.Err = nil
		}
		return nil
	})
	if err != nil {
		failBatch(batch, err)
	}
}

// settle sends one settlement.
func (s *session) settle(ctx context.Context, r *settleRequest) error {
	changed := int64(0)
	err := s.retry(func() error {
		tag, err := s.db.Exec(ctx, s.sql.settle, r.id, ownerOf(r.lease.Owner), fenceOf(r.lease.Fence), int16(r.t.State), int64(r.t.Attempt),
			r.end.until, r.end.expires, []byte(r.t.Error), r.end.code, r.end.gone, r.end.codec, r.end.header, r.end.body, s.wait)
		changed = tag.RowsAffected()
		return err
	})
	if err != nil || changed == 1 {
		return err
	}
	return s.settledBefore(ctx, r)
}

// settledBefore is nil if the record is what the settlement made of it, by an
// earlier sending.
func (s *session) settledBefore(ctx context.Context, r *settleRequest) error {
	f, err := s.get(ctx, r.lease.Key)
	switch {
	case errors.Is(err, store.ErrNotFound):
		return store.ErrLeaseLost
	case err != nil:
		return err
	case f.Record.Lease() == *r.lease && r.t.Done(&f.Record):
		return nil
	}
	return store.ErrLeaseLost
}

// settleArrays are the parameters of a batch of settlements, in the order of
// their ids, with one value for a column that is the same in all.
func settleArrays(batch []*settleItem) []any {
	rows := pgwire.Column(batch, func(it *settleItem) *settleRequest { return it.Req })
	slices.SortFunc(rows, func(a, b *settleRequest) int { return pgwire.CompareIDs(a.id, b.id) })
	type request = *settleRequest
	return []any{
		pgwire.Pointers(rows, func(r *request) pgtype.UUID { return (*r).id }),
		pgwire.Pointers(rows, func(r *request) pgtype.UUID { return ownerOf((*r).lease.Owner) }),
		pgwire.Pointers(rows, func(r *request) pgtype.Int8 { return pgtype.Int8{Int64: fenceOf((*r).lease.Fence), Valid: true} }),
		pgwire.Once(rows, func(r *request) int16 { return int16((*r).t.State) }),
		pgwire.Once(rows, func(r *request) int64 { return int64((*r).t.Attempt) }),
		pgwire.Once(rows, func(r *request) int64 { return pgwire.OrNever((*r).end.until) }),
		pgwire.Once(rows, func(r *request) int64 { return pgwire.OrNever((*r).end.expires) }),
		pgwire.TextOnce(rows, func(r *request) string { return (*r).t.Error }),
		pgwire.Once(rows, func(r *request) int64 { return (*r).end.code }),
		pgwire.Once(rows, func(r *request) bool { return (*r).end.gone }),
		pgwire.OrNulls(rows, func(r *request) []byte { return (*r).end.codec }),
		pgwire.OrNulls(rows, func(r *request) []byte { return (*r).end.header }),
		pgwire.OrNulls(rows, func(r *request) []byte { return (*r).end.body }),
	}
}
