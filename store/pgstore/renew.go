package pgstore

import (
	"context"
	"slices"
	"time"

	"github.com/jackc/pgx/v5/pgtype"

	"github.com/semel-go/semel/store"
	"github.com/semel-go/semel/store/pgstore/internal/pgwire"
)

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
		rows[i] = leaseRow{idOf(l.Key), ownerOf(l.Owner), fenceOf(l.Fence)}
	}
	sorted := slices.Clone(rows)
	slices.SortFunc(sorted, func(a, b leaseRow) int { return pgwire.CompareIDs(a.id, b.id) })
	sorted = slices.Compact(sorted)
	renewed := map[leaseRow]bool{}
	err := pgwire.Retry(func() error {
		clear(renewed) // of a try that was refused when it committed
		return s.leases(ctx, s.sql.renew, renewed, append(leaseArrays(sorted), after(d, true).Int64)...)
	})
	if err != nil {
		return nil, pgwire.Explain("renew", err)
	}
	if len(renewed) == len(sorted) {
		return errs, nil
	}
	locked := map[leaseRow]bool{}
	if err := s.leases(ctx, s.sql.held, locked, leaseArrays(sorted)...); err != nil {
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
