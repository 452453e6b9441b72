package pgoutbox

import (
	"context"
	"slices"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/semel-go/semel/outbox"
	"github.com/semel-go/semel/store/pgstore"
	"github.com/semel-go/semel/store/pgstore/internal/pgwire"
)

// begin begins a transaction. If its process dies, or is paused, between two statements,
// the server ends it after idleLimit, so that the lanes that it has locked are free again:
// the store's own connections have no such limit.
var begin = pgx.TxOptions{BeginQuery: "begin isolation level read committed; set local idle_in_transaction_session_timeout = '" + pgwire.Millis(idleLimit) + "'"}

// idleLimit is less than the time between two renewals with the default lease.
const idleLimit = 3 * time.Second

// inTx runs fn in a transaction of the store's own connections. It runs it again if it
// conflicts with another one.
func (b *Outbox) inTx(ctx context.Context, what string, fn func(tx pgx.Tx) error) error {
	if b.db.Closed() {
		return pgstore.ErrClosed
	}
	return explain(what, pgwire.Retry(func() error {
		return pgx.BeginTxFunc(ctx, b.db.Own, begin, fn)
	}))
}

type laneRow struct {
	outbox.Lane
	owner           string
	until, duration int64
}

// Lease implements outbox.Store.
func (b *Outbox) Lease(ctx context.Context, publisher string, d time.Duration) (lanes []outbox.Lane, share int, err error) {
	lease := func(tx pgx.Tx) error {
		rows, now, err := b.readLanes(ctx, tx)
		if err != nil {
			return err
		}
		if _, err := tx.Exec(ctx, b.sql.expire); err != nil {
			return err
		}
		var others int
		if err := tx.QueryRow(ctx, b.sql.seen, publisher, d.Microseconds()).Scan(&others); err != nil {
			return err
		}
		share = (outbox.Lanes + others) / (others + 1) // rounded up
		lanes = choose(rows, publisher, now, share)
		numbers, fences := split(lanes)
		_, err = tx.Exec(ctx, b.sql.renew, publisher, d.Microseconds(), numbers, fences)
		return err
	}
	// A lane that a fail-over takes back would be given again with the same fence.
	if err := b.db.Commits.Run(func() error { return b.inTx(ctx, "lease", lease) }); err != nil {
		return nil, 0, err
	}
	return lanes, share, nil
}

// readLanes locks all lanes.
func (b *Outbox) readLanes(ctx context.Context, tx pgx.Tx) (lanes []laneRow, now int64, err error) {
	rows, err := tx.Query(ctx, b.sql.lanes)
	if err != nil {
		return nil, 0, err
	}
	defer rows.Close()
	for rows.Next() {
		var l laneRow
		if err := rows.Scan(&l.Number, &l.Fence, &l.owner, &l.until, &l.duration, &now); err != nil {
			return nil, 0, err
		}
		lanes = append(lanes, l)
	}
	return lanes, now, rows.Err()
}

// choose is the lanes that a publisher has, and free ones up to its share with their new
// fences. A lease that ends later than its duration from now is from before the clock
// was set back, or before the database was restored: it is over.
func choose(rows []laneRow, publisher string, now int64, share int) (lanes []outbox.Lane) {
	for _, l := range rows {
		if l.owner == publisher {
			lanes = append(lanes, l.Lane)
		}
	}
	for _, l := range rows {
		free := l.owner == "" || l.until < now || l.until-now > l.duration
		if len(lanes) < share && l.owner != publisher && free {
			lanes = append(lanes, outbox.Lane{Number: l.Number, Fence: l.Fence + 1})
		}
	}
	slices.SortFunc(lanes, func(a, b outbox.Lane) int { return a.Number - b.Number })
	return lanes
}

func split(lanes []outbox.Lane) (numbers []int16, fences []int64) {
	numbers, fences = make([]int16, len(lanes)), make([]int64, len(lanes))
	for i, l := range lanes {
		numbers[i], fences[i] = int16(l.Number), l.Fence //nolint:gosec // below outbox.Lanes
	}
	return numbers, fences
}

// Release implements outbox.Store.
func (b *Outbox) Release(ctx context.Context, publisher string, lanes []outbox.Lane) error {
	numbers, fences := split(lanes)
	return b.inTx(ctx, "release", func(tx pgx.Tx) error {
		if _, err := tx.Exec(ctx, b.sql.release, publisher, numbers, fences); err != nil {
			return err
		}
		_, err := tx.Exec(ctx, b.sql.forget, publisher)
		return err
	})
}
