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
	"github.com/semel-go/semel/store/pgstore/internal/table"
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
	end   table.StateColumns
}

func newSettleRequest(l *store.Lease, t *store.Settlement) (*settleRequest, error) {
	e, err := table.NewStateColumns(t.State, &t.Outcome, t.Wait, t.Keep)
	return &settleRequest{l, t, table.ID(l.Key), e}, err
}

// errNotHeld: no row was as the lease says. It may have been settled before.
var errNotHeld = errors.New("not held")

func (s *Store) newSettleLane() *settleLane {
	return coalesce.New(s.flushSettles, &coalesce.Options[*settleRequest]{
		MaxBatch: s.opt.MaxBatch, Company: company, Flushers: s.opt.Flushers,
		Conflict: func(r **settleRequest) uint64 { return table.KeyHash((*r).id) },
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
		size += len(it.Req.end.Body) + len(it.Req.end.Header) + len(it.Req.t.Error)
	}
	if size > table.MaxOutcome { // more than a message may hold, though each is less
		for _, it := range batch {
			it.Err = errAlone
		}
		return
	}
	var id pgtype.UUID
	to := []any{&id}
	err := s.sendBatch(ctx, s.sql.SettleMany, settleArrays(batch), func(rows pgx.Rows) error {
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
		tag, err := s.db.Exec(ctx, s.sql.Settle, r.id, table.Owner(r.lease.Owner), table.Fence(r.lease.Fence), int16(r.t.State), int64(r.t.Attempt),
			r.end.Until, r.end.Expires, []byte(r.t.Error), r.end.Code, r.end.Gone, r.end.Codec, r.end.Header, r.end.Body, s.wait)
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
		pgwire.Pointers(rows, func(r *request) pgtype.UUID { return table.Owner((*r).lease.Owner) }),
		pgwire.Pointers(rows, func(r *request) pgtype.Int8 { return pgtype.Int8{Int64: table.Fence((*r).lease.Fence), Valid: true} }),
		pgwire.Once(rows, func(r *request) int16 { return int16((*r).t.State) }),
		pgwire.Once(rows, func(r *request) int64 { return int64((*r).t.Attempt) }),
		pgwire.Once(rows, func(r *request) int64 { return pgwire.OrNever((*r).end.Until) }),
		pgwire.Once(rows, func(r *request) int64 { return pgwire.OrNever((*r).end.Expires) }),
		pgwire.TextOnce(rows, func(r *request) string { return (*r).t.Error }),
		pgwire.Once(rows, func(r *request) int64 { return (*r).end.Code }),
		pgwire.Once(rows, func(r *request) bool { return (*r).end.Gone }),
		pgwire.OrNulls(rows, func(r *request) []byte { return (*r).end.Codec }),
		pgwire.OrNulls(rows, func(r *request) []byte { return (*r).end.Header }),
		pgwire.OrNulls(rows, func(r *request) []byte { return (*r).end.Body }),
	}
}

// leaseRow is a lease as the columns hold it.
type leaseRow struct {
	id, owner pgtype.UUID
	fence     int64
}

// Renew implements store.Store in one round trip, on a connection of its own. One
// that hangs holds up no other.
// It waits for no row: one that another transaction holds is ErrBusy, and the
// others are renewed.
func (s *Store) Renew(ctx context.Context, held []store.Lease, d time.Duration) ([]error, error) {
	if s.closed.Load() {
		return nil, ErrClosed
	}
	errs := make([]error, len(held))
	if err := ctx.Err(); err != nil || len(held) == 0 {
		return errs, err
	}
	rows := make([]leaseRow, len(held))
	for i, l := range held {
		rows[i] = leaseRow{table.ID(l.Key), table.Owner(l.Owner), table.Fence(l.Fence)}
	}
	sorted := slices.Clone(rows)
	slices.SortFunc(sorted, func(a, b leaseRow) int { return pgwire.CompareIDs(a.id, b.id) })
	sorted = slices.Compact(sorted)
	renewed := map[leaseRow]bool{}
	err := pgwire.Retry(func() error {
		clear(renewed) // of a try that was refused when it committed
		return s.leases(ctx, s.sql.Renew, renewed, append(leaseArrays(sorted), table.Micros(d, true).Int64)...)
	})
	if err != nil {
		return nil, pgwire.Explain("renew", err)
	}
	if len(renewed) == len(sorted) {
		return errs, nil
	}
	locked := map[leaseRow]bool{}
	if err := s.leases(ctx, s.sql.HeldLeases, locked, leaseArrays(sorted)...); err != nil {
		return nil, pgwire.Explain("renew", err)
	}
	for i, r := range rows {
		switch {
		case renewed[r]:
		case locked[r]:
			errs[i] = pgwire.Explain("renew", ErrBusy)
		default:
			errs[i] = store.ErrLeaseLost
		}
	}
	return errs, nil
}

// leases runs a statement that returns leases, and adds them to set.
func (s *Store) leases(ctx context.Context, sql string, set map[leaseRow]bool, args ...any) error {
	rows, err := s.renewal.Query(ctx, sql, args...)
	if err != nil {
		return err
	}
	defer rows.Close()
	for rows.Next() {
		var r leaseRow
		if err := rows.Scan(&r.id, &r.owner, &r.fence); err != nil {
			return err
		}
		set[r] = true
	}
	return rows.Err()
}

func leaseArrays(rows []leaseRow) []any {
	ids, owners, fences := make([]pgtype.UUID, len(rows)), make([]pgtype.UUID, len(rows)), make([]int64, len(rows))
	for i, r := range rows {
		ids[i], owners[i], fences[i] = r.id, r.owner, r.fence
	}
	return []any{ids, owners, fences}
}
