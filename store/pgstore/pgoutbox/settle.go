package pgoutbox

import (
	"context"

	"github.com/jackc/pgx/v5"

	"github.com/semel-go/semel/outbox"
	"github.com/semel-go/semel/store/pgstore"
	"github.com/semel-go/semel/store/pgstore/internal/pgwire"
)

// Settle implements outbox.Store. That a waiting message was delivered needs no fence: it
// is true whoever has the lane now. A result changes a row only if its order_hash and its time
// of writing are those of the message, because a position can be used again: a standby that lacks the
// last commits gives their positions to other messages after a fail-over.
func (b *Outbox) Settle(ctx context.Context, results []outbox.Result) error {
	if b.db.Closed() {
		return pgstore.ErrClosed
	}
	var deleted, kept arrays
	var others []outbox.Result
	for _, r := range results {
		switch {
		case r.Kind != outbox.Delivered || r.State == outbox.Held:
			others = append(others, r)
		case r.Keep:
			kept.add(r.Taken)
		default:
			deleted.add(r.Taken)
		}
	}
	for _, part := range []struct {
		sql string
		arrays
	}{{b.sql.deleteSent, deleted}, {b.sql.keepSent, kept}} {
		if len(part.positions) == 0 {
			continue
		}
		err := pgwire.Retry(func() error {
			_, err := b.db.Own.Exec(ctx, part.sql, part.lanes, part.positions, part.orders, part.written)
			return err
		})
		if err != nil {
			return explain("settle", err)
		}
	}
	if len(others) == 0 {
		return nil
	}
	return b.inTx(ctx, "settle", func(tx pgx.Tx) error { return b.settleHeld(ctx, tx, others) })
}

// failures are the arguments of recordFailed.
type failures struct {
	arrays
	refused  []bool
	delays   []int64
	errors   []string
	attempts []int32
}

// settleHeld settles messages that have failed, and held ones that were delivered. All
// changes of keys lock the lane first, and look at the keys in later statements.
func (b *Outbox) settleHeld(ctx context.Context, tx pgx.Tx, results []outbox.Result) error {
	messages := make([]outbox.Taken, len(results))
	for i := range results {
		messages[i] = *results[i].Taken
	}
	owned, err := b.lockLanes(ctx, tx, messages)
	if err != nil {
		return err
	}
	var deleted, kept, moved arrays
	var failed failures
	for _, r := range results {
		switch {
		case r.Kind == outbox.Delivered && r.Keep:
			kept.add(r.Taken)
		case r.Kind == outbox.Delivered:
			deleted.add(r.Taken)
		case owned[r.Lane]:
			if r.State == outbox.Waiting {
				moved.add(r.Taken)
			}
			failed.add(r.Taken)
			failed.refused = append(failed.refused, r.Kind == outbox.Refused)
			failed.delays = append(failed.delays, r.Delay.Microseconds())
			failed.errors = append(failed.errors, r.Error)
			failed.attempts = append(failed.attempts, int32(r.Attempts)) //nolint:gosec // the column has this type
		}
	}
	if err := b.endHeld(ctx, tx, deleted, kept); err != nil {
		return err
	}
	for _, s := range []struct {
		count int
		step
	}{
		{len(moved.lanes), step{b.sql.moveFailed, []any{moved.lanes, moved.positions, moved.orders, moved.written}}},
		{len(failed.orders), step{b.sql.recordFailed, []any{failed.orders, failed.positions, failed.written, failed.refused, failed.delays, failed.errors, failed.attempts}}},
	} {
		if s.count > 0 {
			if _, err := tx.Exec(ctx, s.sql, s.args...); err != nil {
				return err
			}
		}
	}
	return nil
}

// endHeld deletes or keeps held messages that were delivered, and lets their keys go on.
// A message that is no longer there was settled before, or dropped: its key may have
// failed again since, or be stopped by a later message, and stays as it is.
func (b *Outbox) endHeld(ctx context.Context, tx pgx.Tx, deleted, kept arrays) error {
	var ended arrays
	for _, part := range []struct {
		sql string
		arrays
	}{{b.sql.deleteHeld, deleted}, {b.sql.keepHeld, kept}} {
		if len(part.orders) == 0 {
			continue
		}
		rows, err := tx.Query(ctx, part.sql, part.orders, part.positions, part.written)
		if err != nil {
			return err
		}
		var order, position int64
		if _, err := pgx.ForEachRow(rows, []any{&order, &position}, func() error {
			ended.orders, ended.positions = append(ended.orders, order), append(ended.positions, position)
			return nil
		}); err != nil {
			return err
		}
	}
	return b.resumeKeys(ctx, tx, ended.orders, ended.positions)
}

// resumeKeys lets keys go on after messages of them have ended.
func (b *Outbox) resumeKeys(ctx context.Context, tx pgx.Tx, orders, positions []int64) error {
	if len(orders) == 0 {
		return nil
	}
	if _, err := tx.Exec(ctx, b.sql.resumeKeys, orders, positions); err != nil {
		return err
	}
	_, err := tx.Exec(ctx, b.sql.deleteDoneKeys, orders)
	return err
}
