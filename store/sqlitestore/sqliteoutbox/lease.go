package sqliteoutbox

import (
	"context"
	"database/sql"
	"time"

	"github.com/semel-go/semel/outbox"
)

type laneRow struct {
	outbox.Lane
	owner           string
	until, duration int64
}

func readLanes(ctx context.Context, tx *sql.Tx) (lanes []laneRow, err error) {
	rows, err := tx.QueryContext(ctx, `SELECT lane, fence, owner, until, duration FROM semel_outbox_lane ORDER BY lane`)
	if err != nil {
		return nil, err
	}
	defer rows.Close()
	for rows.Next() {
		var l laneRow
		if err := rows.Scan(&l.Number, &l.Fence, &l.owner, &l.until, &l.duration); err != nil {
			return nil, err
		}
		lanes = append(lanes, l)
	}
	return lanes, rows.Err()
}

// Lease implements outbox.Store. A lease that ends later than its duration from now is
// from before the clock was set back: it is over.
func (b *Outbox) Lease(ctx context.Context, publisher string, d time.Duration) (lanes []outbox.Lane, share int, err error) {
	err = b.write(ctx, "lease", func(tx *sql.Tx) error {
		lanes = nil
		now, length := time.Now().UnixMicro(), d.Microseconds()
		if _, err := tx.ExecContext(ctx, `DELETE FROM semel_outbox_publisher WHERE name = ?1 OR until < ?2 OR until - ?2 > duration`, publisher, now); err != nil {
			return err
		}
		if _, err := tx.ExecContext(ctx, `INSERT INTO semel_outbox_publisher (name, until, duration) VALUES (?, ?, ?)`, publisher, now+length, length); err != nil {
			return err
		}
		var count int
		if err := tx.QueryRowContext(ctx, `SELECT count(*) FROM semel_outbox_publisher`).Scan(&count); err != nil {
			return err
		}
		share = (outbox.Lanes + count - 1) / count
		rows, err := readLanes(ctx, tx)
		if err != nil {
			return err
		}
		mine := 0
		for _, l := range rows {
			if l.owner == publisher {
				mine++
			}
		}
		for _, l := range rows {
			isFree := l.owner == "" || l.until < now || l.until-now > l.duration
			switch {
			case l.owner == publisher:
			case isFree && mine < share:
				l.Fence++
				mine++
			default:
				continue
			}
			if _, err := tx.ExecContext(ctx, `UPDATE semel_outbox_lane SET fence = ?, owner = ?, until = ?, duration = ? WHERE lane = ?`,
				l.Fence, publisher, now+length, length, l.Number); err != nil {
				return err
			}
			lanes = append(lanes, l.Lane)
		}
		return nil
	})
	if err != nil {
		return nil, 0, err
	}
	return lanes, share, nil
}

// Release implements outbox.Store.
func (b *Outbox) Release(ctx context.Context, publisher string, lanes []outbox.Lane) error {
	return b.write(ctx, "release", func(tx *sql.Tx) error {
		for _, l := range lanes {
			if _, err := tx.ExecContext(ctx, `UPDATE semel_outbox_lane SET owner = '' WHERE lane = ? AND fence = ? AND owner = ?`, l.Number, l.Fence, publisher); err != nil {
				return err
			}
		}
		_, err := tx.ExecContext(ctx, `DELETE FROM semel_outbox_publisher WHERE name = ?1 AND NOT EXISTS (SELECT 1 FROM semel_outbox_lane WHERE owner = ?1)`, publisher)
		return err
	})
}
