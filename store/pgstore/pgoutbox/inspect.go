package pgoutbox

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/semel-go/semel/outbox"
	"github.com/semel-go/semel/store/pgstore"
)

// Stats implements outbox.Inspector. It counts the waiting messages by an index.
func (b *Outbox) Stats(ctx context.Context) (s outbox.Stats, err error) {
	err = b.inTx(ctx, "stats", func(tx pgx.Tx) error {
		if _, err := tx.Exec(ctx, byIndex); err != nil {
			return err
		}
		var age *int64
		if err := tx.QueryRow(ctx, b.sql.stats).Scan(&s.Waiting, &s.Held, &s.Quarantined, &s.StoppedKeys, &age); err != nil {
			return err
		}
		s.OldestAge = 0
		if age != nil {
			s.OldestAge = max(0, time.Duration(*age)*time.Microsecond)
		}
		return nil
	})
	return s, err
}

// List implements outbox.Inspector.
func (b *Outbox) List(ctx context.Context, state outbox.State, after int64, limit int) ([]outbox.Entry, error) {
	if b.db.Closed() {
		return nil, pgstore.ErrClosed
	}
	sql, args := b.sql.listWaiting, []any{after, limit}
	switch state {
	case outbox.Waiting:
	case outbox.Sent:
		sql = b.sql.listSent
	case outbox.Held, outbox.Quarantined:
		sql, args = b.sql.listHeld, append(args, state == outbox.Quarantined)
	default:
		return nil, fmt.Errorf("pgoutbox: list: %v is no state", state)
	}
	rows, err := b.db.Own.Query(ctx, sql, args...)
	if err != nil {
		return nil, explain("list", err)
	}
	entries, err := pgx.CollectRows(rows, func(found pgx.CollectableRow) (outbox.Entry, error) {
		var r row
		if err := found.Scan(r.targets()...); err != nil {
			return r.entry, err
		}
		r.finish(state == outbox.Held)
		return r.entry, nil
	})
	return entries, explain("list", err)
}

// ListCall implements outbox.Inspector, in one round trip.
func (b *Outbox) ListCall(ctx context.Context, hash string, limit int) ([]outbox.Entry, error) {
	first, last, err := outbox.CallRange(hash)
	if err != nil {
		return nil, err
	}
	if b.db.Closed() {
		return nil, pgstore.ErrClosed
	}
	rows, err := b.db.Own.Query(ctx, b.sql.listCall, first, last, limit)
	if err != nil {
		return nil, explain("list", err)
	}
	entries, err := pgx.CollectRows(rows, func(found pgx.CollectableRow) (outbox.Entry, error) {
		var r row
		var table int
		if err := found.Scan(append(r.targets(), &table)...); err != nil {
			return r.entry, err
		}
		r.finish(table == inHeld)
		return r.entry, nil
	})
	return entries, explain("list", err)
}

// The tables in which a message can be, as the statements listCall, find and laneOf name
// them. The third is that of sent messages.
const (
	inHeld    = 1
	inWaiting = 2
)

// Get implements outbox.Inspector.
func (b *Outbox) Get(ctx context.Context, position int64) (outbox.Entry, error) {
	if b.db.Closed() {
		return outbox.Entry{}, pgstore.ErrClosed
	}
	var r row
	var table int
	err := b.db.Own.QueryRow(ctx, b.sql.find, position).Scan(append(r.targets(), &table)...)
	if errors.Is(err, pgx.ErrNoRows) {
		return outbox.Entry{}, fmt.Errorf("%w: position %d", outbox.ErrNotFound, position)
	}
	if err == nil {
		r.finish(table == inHeld)
	}
	return r.entry, explain("get", err)
}

// locate finds the table of a message, and locks its lane.
func (b *Outbox) locate(ctx context.Context, tx pgx.Tx, position int64) (lane, table int, err error) {
	for range 2 { // the second time the lane is locked, so that nothing moves
		err = tx.QueryRow(ctx, b.sql.laneOf, position).Scan(&lane, &table)
		if errors.Is(err, pgx.ErrNoRows) {
			return 0, 0, fmt.Errorf("%w: position %d", outbox.ErrNotFound, position)
		}
		if err != nil {
			return 0, 0, err
		}
		if _, err := tx.Exec(ctx, b.sql.lock, []int16{int16(lane)}); err != nil { //nolint:gosec // below outbox.Lanes
			return 0, 0, err
		}
	}
	return lane, table, nil
}

// Retry implements outbox.Inspector.
func (b *Outbox) Retry(ctx context.Context, position int64) error {
	return b.inTx(ctx, "retry", func(tx pgx.Tx) error {
		_, table, err := b.locate(ctx, tx, position)
		if err != nil {
			return err
		}
		if table != inHeld {
			return fmt.Errorf("%w: position %d is neither held nor in the quarantine", outbox.ErrState, position)
		}
		for _, sql := range []string{b.sql.free, b.sql.due} {
			if _, err := tx.Exec(ctx, sql, position); err != nil {
				return err
			}
		}
		_, err = tx.Exec(ctx, notifySQL, b.channel)
		return err
	})
}

// Drop implements outbox.Inspector.
func (b *Outbox) Drop(ctx context.Context, position int64) error {
	return b.inTx(ctx, "drop", func(tx pgx.Tx) error {
		lane, table, err := b.locate(ctx, tx, position)
		if err != nil {
			return err
		}
		switch table {
		case inWaiting:
			_, err := tx.Exec(ctx, b.sql.dropWaiting, lane, position)
			return err
		case inHeld:
		default:
			return fmt.Errorf("%w: position %d is sent", outbox.ErrState, position)
		}
		var order int64
		if err := tx.QueryRow(ctx, b.sql.dropHeld, position).Scan(&order); err != nil {
			return err
		}
		if err := b.resumeKeys(ctx, tx, []int64{order}, []int64{position}); err != nil {
			return err
		}
		_, err = tx.Exec(ctx, notifySQL, b.channel)
		return err
	})
}
