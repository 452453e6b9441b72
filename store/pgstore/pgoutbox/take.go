package pgoutbox

import (
	"context"
	"fmt"
	"math/rand/v2"
	"slices"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/semel-go/semel/outbox"
	"github.com/semel-go/semel/store"
	"github.com/semel-go/semel/store/pgstore"
	"github.com/semel-go/semel/store/pgstore/internal/pgwire"
)

// row is a message as a query returns it.
type row struct {
	entry       outbox.Entry
	order       int64
	lane        int
	quarantined bool
	written     int64
	sent        int64
	headers     string
}

// targets are where the columns of a message are read into.
func (r *row) targets() []any {
	m := &r.entry
	return []any{
		&m.Position, &r.written, &r.order, &r.lane, &r.quarantined, &m.Attempts, &m.LastError, &r.sent,
		&m.Topic, &m.OrderKey, &m.ID, &m.Call, &r.headers, &m.Body,
	}
}

// finish fills in the fields that targets does not read.
func (r *row) finish(isHeld bool) {
	m := &r.entry
	m.Written = time.UnixMicro(r.written)
	switch {
	case r.sent != 0:
		m.State, m.Sent = outbox.Sent, time.UnixMicro(r.sent)
	case r.quarantined:
		m.State = outbox.Quarantined
	case isHeld:
		m.State = outbox.Held
	default:
		m.State = outbox.Waiting
	}
	var err error
	if m.Headers, err = store.DecodeHeader([]byte(r.headers)); err != nil {
		m.Unreadable = fmt.Errorf("pgoutbox: the headers of message %d cannot be read: %w", m.Position, err)
	}
}

// Take implements outbox.Store.
func (b *Outbox) Take(ctx context.Context, lanes []outbox.Lane, busy []int64, paused []string, limit int) ([]outbox.Taken, error) {
	if b.db.Closed() {
		return nil, pgstore.ErrClosed
	}
	for range mostReads {
		taken, blocked, hasStandby, err := b.read(ctx, lanes, busy, paused, limit)
		if err == nil && len(blocked) > 0 {
			err = b.hold(ctx, blocked)
		}
		if err == nil && hasStandby && len(taken) > 0 { // the commit that wrote a message may not have waited
			err = b.db.Confirm(ctx)
		}
		if err != nil {
			return nil, explain("take", err)
		}
		if len(taken) > 0 || len(blocked) == 0 {
			return taken, nil
		}
	}
	return nil, nil
}

// mostReads is how often a Take reads again, if it has found only messages to be held.
const mostReads = 100

// read reads messages. The keys of the messages in blocked have failed. With hasStandby,
// commits wait for a synchronous standby.
func (b *Outbox) read(ctx context.Context, lanes []outbox.Lane, busy []int64, paused []string, limit int) (taken, blocked []outbox.Taken, hasStandby bool, err error) {
	busy, paused = append([]int64{}, busy...), append([]string{}, paused...) // a nil slice would be NULL
	lanes = slices.Clone(lanes)
	rand.Shuffle(len(lanes), func(i, j int) { lanes[i], lanes[j] = lanes[j], lanes[i] }) // the first ones may use up the limit
	numbers, fences := split(lanes)
	rows, err := b.db.Own.Query(ctx, b.sql.take, numbers, fences, busy, max(1, limit/4), max(1, limit-limit/4), paused)
	if err != nil {
		return nil, nil, false, err
	}
	defer rows.Close()
	for rows.Next() {
		var r row
		var fence int64
		var isHeld, isBlocked bool
		if err := rows.Scan(append(append([]any{&fence}, r.targets()...), &isHeld, &isBlocked, &hasStandby)...); err != nil {
			return nil, nil, false, err
		}
		r.finish(isHeld)
		t := outbox.Taken{Entry: r.entry, Lane: outbox.Lane{Number: r.lane, Fence: fence}, Order: r.order}
		if isBlocked {
			blocked = append(blocked, t)
		} else {
			taken = append(taken, t)
		}
	}
	return taken, blocked, hasStandby, rows.Err()
}

// hold moves messages to the failed ones of their keys, so that the next Take does not
// find them again. The lane is locked, and the statement after it looks again whether
// the key still has failed.
func (b *Outbox) hold(ctx context.Context, messages []outbox.Taken) error {
	return b.inTx(ctx, "hold", func(tx pgx.Tx) error {
		owned, err := b.lockLanes(ctx, tx, messages)
		if err != nil {
			return err
		}
		var a arrays
		for i := range messages {
			if t := &messages[i]; owned[t.Lane] {
				a.add(t)
			}
		}
		_, err = tx.Exec(ctx, b.sql.setAside, a.lanes, a.positions)
		return err
	})
}

// lockLanes locks the lanes of messages until the end of the transaction, and reports
// which of them still have the fence of their message.
func (b *Outbox) lockLanes(ctx context.Context, tx pgx.Tx, messages []outbox.Taken) (owned map[outbox.Lane]bool, err error) {
	var numbers []int16
	for i := range messages {
		if n := int16(messages[i].Lane.Number); !slices.Contains(numbers, n) { //nolint:gosec // below outbox.Lanes
			numbers = append(numbers, n)
		}
	}
	rows, err := tx.Query(ctx, b.sql.lock, numbers)
	if err != nil {
		return nil, err
	}
	locked, err := pgx.CollectRows(rows, func(r pgx.CollectableRow) (l outbox.Lane, err error) {
		return l, r.Scan(&l.Number, &l.Fence)
	})
	owned = map[outbox.Lane]bool{}
	for _, l := range locked {
		owned[l] = true
	}
	return owned, err
}

// arrays are the arguments of a statement for many messages.
type arrays struct {
	lanes     []int16
	positions []int64
	orders    []int64
	written   []int64
}

func (a *arrays) add(t *outbox.Taken) {
	a.lanes = append(a.lanes, int16(t.Lane.Number)) //nolint:gosec // below outbox.Lanes
	a.positions = append(a.positions, t.Position)
	a.orders = append(a.orders, t.Order)
	a.written = append(a.written, t.Written.UnixMicro())
}

// Trim implements outbox.Store.
func (b *Outbox) Trim(ctx context.Context, retention time.Duration, limit int) (int, error) {
	if b.db.Closed() {
		return 0, pgstore.ErrClosed
	}
	var n int64
	err := pgwire.Retry(func() error {
		tag, err := b.db.Own.Exec(ctx, b.sql.trim, retention.Microseconds(), limit)
		n = tag.RowsAffected()
		return err
	})
	return int(n), explain("trim", err)
}
