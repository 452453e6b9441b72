package sqliteoutbox

import (
	"context"
	"database/sql"
	"time"

	"github.com/semel-go/semel/outbox"
)

// same says that a row is the message of a result. A position alone does not say so, because a file
// whose content was restored from a copy uses positions again.
const same = `position = ? AND order_hash = ? AND written = ?`

// sameAs are the arguments of same.
func sameAs(t *outbox.Taken, more ...any) []any {
	return append(more, t.Position, t.Order, t.Written.UnixMicro())
}

// Settle implements outbox.Store.
func (b *Outbox) Settle(ctx context.Context, results []outbox.Result) error {
	return b.write(ctx, "settle", func(tx *sql.Tx) error {
		lanes, err := readLanes(ctx, tx)
		if err != nil {
			return err
		}
		for _, r := range results {
			switch {
			case r.Kind == outbox.Delivered:
				err = deliver(ctx, tx, &r)
			case lanes[r.Lane.Number].Fence == r.Lane.Fence:
				err = fail(ctx, tx, &r)
			}
			if err != nil {
				return err
			}
		}
		return nil
	})
}

// deliver deletes a message, or keeps it as sent.
func deliver(ctx context.Context, tx *sql.Tx, r *outbox.Result) error {
	table := "semel_outbox"
	if r.State == outbox.Held {
		table = "semel_outbox_held"
	}
	if r.Keep {
		if _, err := tx.ExecContext(ctx, `INSERT INTO semel_outbox_sent (sent, `+keptColumns+`) SELECT ?, `+keptColumns+` FROM `+table+` WHERE `+same,
			sameAs(r.Taken, time.Now().UnixMicro())...); err != nil {
			return err
		}
	}
	res, err := tx.ExecContext(ctx, `DELETE FROM `+table+` WHERE `+same, sameAs(r.Taken)...)
	if err != nil || r.State != outbox.Held {
		return err
	}
	if n, err := res.RowsAffected(); err != nil || n == 0 { // it was settled before, or dropped
		return err
	}
	return resumeKey(ctx, tx, r.Order, r.Position)
}

// resumeKey lets a key go on after a message of it has ended, unless an earlier one is left.
func resumeKey(ctx context.Context, tx *sql.Tx, order, position int64) error {
	if _, err := tx.ExecContext(ctx, `UPDATE semel_outbox_key SET failures = 0, retry_at = 0, stopped = 0 WHERE order_hash = ?1
		AND NOT EXISTS (SELECT 1 FROM semel_outbox_held WHERE order_hash = ?1 AND position < ?2)`, order, position); err != nil {
		return err
	}
	_, err := tx.ExecContext(ctx, `DELETE FROM semel_outbox_key WHERE order_hash = ?1 AND NOT EXISTS (SELECT 1 FROM semel_outbox_held WHERE order_hash = ?1)`, order)
	return err
}

// fail moves a message to the held ones, unless it is there, and delays or stops its key.
func fail(ctx context.Context, tx *sql.Tx, r *outbox.Result) error {
	if r.State == outbox.Waiting {
		if err := move(ctx, tx, r.Taken); err != nil {
			return err
		}
	}
	refused := r.Kind == outbox.Refused
	res, err := tx.ExecContext(ctx, `UPDATE semel_outbox_held SET attempts = attempts + 1, quarantined = ?, last_error = ? WHERE `+same+` AND attempts = ?`, append(sameAs(r.Taken, refused, r.Error), r.Attempts)...)
	if err != nil {
		return err
	}
	if n, err := res.RowsAffected(); err != nil || n == 0 { // it is recorded already, or somebody has dropped it
		return err
	}
	_, err = tx.ExecContext(ctx, `INSERT INTO semel_outbox_key (order_hash, retry_at, failures, lane, stopped) VALUES (?, ?, 1, ?, ?)
		ON CONFLICT (order_hash) DO UPDATE SET retry_at = excluded.retry_at, failures = failures + 1, stopped = excluded.stopped`,
		r.Order, time.Now().Add(r.Delay).UnixMicro(), r.Lane.Number, refused)
	return err
}

// Trim implements outbox.Store.
func (b *Outbox) Trim(ctx context.Context, retention time.Duration, limit int) (int, error) {
	var n int64
	err := b.write(ctx, "trim", func(tx *sql.Tx) error {
		res, err := tx.ExecContext(ctx, `DELETE FROM semel_outbox_sent WHERE position IN (SELECT position FROM semel_outbox_sent WHERE sent < ? ORDER BY sent LIMIT ?)`,
			time.Now().Add(-retention).UnixMicro(), limit)
		if err != nil {
			return err
		}
		n, err = res.RowsAffected()
		return err
	})
	return int(n), err
}
