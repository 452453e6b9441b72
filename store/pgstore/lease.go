package pgstore

import (
	"context"
	crand "crypto/rand"
	"errors"
	"fmt"
	"math"
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
	settleBatcher = coalesce.Batcher[*settleRequest, struct{}]
	settleItem    = coalesce.Item[*settleRequest, struct{}]
)

// settleRequest is one settlement as its statement takes it.
type settleRequest struct {
	lease      *store.Lease
	settlement *store.Settlement
	id         pgtype.UUID
	columns    table.StateColumns
}

func newSettleRequest(lease *store.Lease, settlement *store.Settlement) (*settleRequest, error) {
	columns, err := table.NewStateColumns(settlement.State, &settlement.Outcome, settlement.Wait, settlement.Keep)
	return &settleRequest{lease, settlement, table.ID(lease.Key), columns}, err
}

// errNotHeld: no row matches the lease. The settlement may have been written before.
var errNotHeld = errors.New("the lease is not held")

func (s *Store) newSettleBatcher() *settleBatcher {
	return coalesce.New(s.flushSettles, &coalesce.Options[*settleRequest]{
		MaxBatch: s.options.MaxBatch, QueuedPerFlush: queuedPerFlush, Flushers: s.options.Flushers,
		Conflict: func(r **settleRequest) uint64 { return table.KeyHash((*r).id) },
	})
}

// settleTry limits a round trip of settlements: half the time that a Guard has for a
// settlement. After it, a connection that hangs is given up, and the settlements are
// sent on another one. Otherwise one connection could cost their outcomes although the
// server is healthy.
const settleTry = 5 * time.Second

// flushSettles sends the settlements of a batch in one round trip.
func (s *Store) flushSettles(ctx context.Context, batch []*settleItem) {
	ctx, cancel := context.WithTimeout(ctx, s.options.settleTry)
	defer cancel()
	if len(batch) == 1 {
		it := batch[0]
		it.Err = s.shortWaitSession.settle(ctx, it.Req)
		if pgwire.Code(it.Err) == pgwire.LockNotAvailable {
			it.Err = errRowLocked
		}
		return
	}
	byID := make(map[pgtype.UUID]*settleItem, len(batch))
	size := 0
	for _, it := range batch {
		it.Err = errNotHeld
		byID[it.Req.id] = it
		size += len(it.Req.columns.Body) + len(it.Req.columns.Header) + len(it.Req.settlement.Error)
	}
	if size > table.MaxOutcome { // each one fits in a message, but not all together
		for _, it := range batch {
			it.Err = errSendAlone
		}
		return
	}
	var id pgtype.UUID
	err := s.sendBatch(ctx, s.sql.SettleMany, settleArrays(batch), []any{&id}, func() error {
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
	changed, statement := int64(0), s.sql.Settle
	if r.settlement.State == store.Unknown {
		statement = s.sql.SettleDoubt
	}
	err := s.retry(func() error {
		tag, err := s.db.Exec(ctx, statement, r.id, table.Owner(r.lease.Owner), table.Fence(r.lease.Fence), int16(r.settlement.State), int64(r.settlement.Attempt),
			r.columns.Until, r.columns.Expires, []byte(r.settlement.Error), r.columns.Code, r.columns.Gone, r.columns.Codec, r.columns.Header, r.columns.Body, s.lockTimeout)
		changed = tag.RowsAffected()
		return err
	})
	if err != nil || changed == 1 {
		return err
	}
	return s.settledBefore(ctx, r)
}

// errSettledBefore: an earlier statement has already written this settlement. Its
// commit must be confirmed before the settlement counts as done.
var errSettledBefore = errors.New("an earlier statement has written this settlement")

// settledBefore looks for the settlement that an earlier statement may have written.
func (s *session) settledBefore(ctx context.Context, r *settleRequest) error {
	f, err := s.get(ctx, r.lease.Key)
	switch {
	case errors.Is(err, store.ErrNotFound):
		return store.ErrLeaseLost
	case err != nil:
		return err
	case f.Record.Lease() == *r.lease && r.settlement.Done(&f.Record):
		return errSettledBefore
	}
	return store.ErrLeaseLost
}

// settleArrays are the parameters of a batch of settlements in the order of their ids.
// If a column has the same value in all rows, its array has one element.
func settleArrays(batch []*settleItem) []any {
	rows := pgwire.Column(batch, func(it *settleItem) *settleRequest { return it.Req })
	slices.SortFunc(rows, func(a, b *settleRequest) int { return pgwire.CompareIDs(a.id, b.id) })
	type request = *settleRequest
	return []any{
		pgwire.Pointers(rows, func(r *request) pgtype.UUID { return (*r).id }),
		pgwire.Pointers(rows, func(r *request) pgtype.UUID { return table.Owner((*r).lease.Owner) }),
		pgwire.Pointers(rows, func(r *request) pgtype.Int8 { return pgtype.Int8{Int64: table.Fence((*r).lease.Fence), Valid: true} }),
		pgwire.Once(rows, func(r *request) int16 { return int16((*r).settlement.State) }),
		pgwire.Once(rows, func(r *request) int64 { return int64((*r).settlement.Attempt) }),
		pgwire.Once(rows, func(r *request) int64 { return pgwire.OrNever((*r).columns.Until) }),
		pgwire.Once(rows, func(r *request) int64 { return pgwire.OrNever((*r).columns.Expires) }),
		pgwire.TextOnce(rows, func(r *request) string { return (*r).settlement.Error }),
		pgwire.Once(rows, func(r *request) int64 { return (*r).columns.Code }),
		pgwire.Once(rows, func(r *request) bool { return (*r).columns.Gone }),
		pgwire.OrNulls(rows, func(r *request) []byte { return (*r).columns.Codec }),
		pgwire.OrNulls(rows, func(r *request) []byte { return (*r).columns.Header }),
		pgwire.OrNulls(rows, func(r *request) []byte { return (*r).columns.Body }),
	}
}

// leaseRow is a lease as the columns of the table hold it.
type leaseRow struct {
	id, owner pgtype.UUID
	fence     int64
}

// Renew extends leases, in one round trip. If a lease was not renewed, a second round trip
// finds out why: store.ErrLeaseLost, or ErrBusy if its row is locked. Renew does not wait
// for a locked row, and renews the other leases. It uses a connection that only renewals
// use. If that connection hangs, the next Renew uses another one. Renew implements
// store.Store.
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
	err := s.commits.Run(func() error {
		return pgwire.Retry(func() error {
			clear(renewed) // results of a try whose commit was refused
			return s.leases(ctx, s.sql.Renew, renewed, append(leaseArrays(sorted), table.Micros(d, true).Int64)...)
		})
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
	rows, err := s.renewalPool.Query(ctx, sql, args...)
	if err != nil {
		return err
	}
	var r leaseRow
	_, err = pgx.ForEachRow(rows, []any{&r.id, &r.owner, &r.fence}, func() error {
		set[r] = true
		return nil
	})
	return err
}

func leaseArrays(rows []leaseRow) []any {
	ids, owners, fences := make([]pgtype.UUID, len(rows)), make([]pgtype.UUID, len(rows)), make([]int64, len(rows))
	for i, r := range rows {
		ids[i], owners[i], fences[i] = r.id, r.owner, r.fence
	}
	return []any{ids, owners, fences}
}

type confirmBatcher = coalesce.Batcher[struct{}, struct{}]

func (s *Store) newConfirmBatcher() *confirmBatcher {
	return coalesce.New(s.flushConfirms, &coalesce.Options[struct{}]{MaxBatch: math.MaxInt32, Flushers: 2})
}

func (s *Store) flushConfirms(ctx context.Context, batch []*coalesce.Item[struct{}, struct{}]) {
	ctx, cancel := context.WithTimeout(ctx, s.options.settleTry)
	defer cancel()
	err := s.commits.Run(func() error {
		_, err := s.ownPool.Exec(ctx, table.WriteBarrier)
		return err
	})
	for _, it := range batch {
		it.Err = err
	}
}

// Confirm returns nil after everything that was visible when it was called is durable, also on
// the synchronous standby. It takes one round trip. It implements store.Confirmer.
func (s *Store) Confirm(ctx context.Context) error {
	return pgwire.Explain("confirm", s.confirm(ctx))
}

// confirm returns nil after everything that was visible when it was called is durable,
// also on the synchronous standby: it commits a write, which waits for both. All
// callers at the same time share one write. Its errors have no code of the server, so
// that nobody takes them for the refusal of another statement.
func (s *Store) confirm(ctx context.Context) error {
	if s.closed.Load() {
		return ErrClosed
	}
	if _, err := s.confirms.Do(ctx, struct{}{}); err != nil {
		return fmt.Errorf("%w: %v", errUnconfirmed, err) //nolint:errorlint // see above
	}
	return nil
}

var errUnconfirmed = errors.New("a record was found, but the server does not confirm that it is durable; if a synchronous standby is away, commits wait for it")

func newOwnerToken() (owner store.Owner) {
	_, _ = crand.Read(owner[:]) // it never fails
	return owner
}
