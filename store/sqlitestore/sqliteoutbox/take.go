package sqliteoutbox

import (
	"context"
	"database/sql"
	"encoding/json"
	"fmt"
	"time"

	"github.com/semel-go/semel/outbox"
	"github.com/semel-go/semel/store"
)

// The columns of a message, in the order in which scan reads them.
const (
	waitingColumns = `o.position, o.written, o.order_hash, o.lane, 0, 0, '', 0, o.topic, o.order_key, o.id, coalesce(o.call_hash, ''), o.headers, o.body`
	heldColumns    = `h.position, h.written, h.order_hash, h.lane, h.quarantined, h.attempts, h.last_error, 0, h.topic, h.order_key, h.id, coalesce(h.call_hash, ''), h.headers, h.body`
	sentColumns    = `s.position, s.written, 0, 0, 0, 0, '', s.sent, s.topic, s.order_key, s.id, coalesce(s.call_hash, ''), s.headers, s.body`
	movedColumns   = `position, written, order_hash, lane, topic, order_key, id, call_hash, headers, body`
	keptColumns    = `position, written, topic, order_key, id, call_hash, headers, body`
)

// row is a message as a query returns it.
type row struct{ outbox.Taken }

// scan reads the columns of a message, and more.
func scan(rows *sql.Rows, isHeld bool, more ...any) (r row, err error) {
	var written, sent int64
	var quarantined bool
	var headers string
	m := &r.Entry
	err = rows.Scan(append([]any{
		&m.Position, &written, &r.Order, &r.Lane.Number, &quarantined, &m.Attempts, &m.LastError, &sent,
		&m.Topic, &m.OrderKey, &m.ID, &m.Call, &headers, &m.Body,
	}, more...)...)
	if err != nil {
		return r, err
	}
	m.Written = time.UnixMicro(written)
	switch {
	case sent != 0:
		m.State, m.Sent = outbox.Sent, time.UnixMicro(sent)
	case quarantined:
		m.State = outbox.Quarantined
	case isHeld:
		m.State = outbox.Held
	default:
		m.State = outbox.Waiting
	}
	if m.Headers, err = store.DecodeHeader([]byte(headers)); err != nil {
		m.Unreadable = fmt.Errorf("sqliteoutbox: the headers of message %d cannot be read: %w", m.Position, err)
	}
	return r, nil
}

// query is the messages that a query returns.
func query(ctx context.Context, tx *sql.Tx, isHeld bool, text string, args ...any) (found []row, err error) {
	rows, err := tx.QueryContext(ctx, text, args...)
	if err != nil {
		return nil, err
	}
	defer rows.Close()
	for rows.Next() {
		r, err := scan(rows, isHeld)
		if err != nil {
			return nil, err
		}
		found = append(found, r)
	}
	return found, rows.Err()
}

const (
	takeWaiting = `SELECT ` + waitingColumns + `, k.order_hash IS NOT NULL FROM semel_outbox o LEFT JOIN semel_outbox_key k ON k.order_hash = o.order_hash
		WHERE o.lane IN (SELECT value FROM json_each(?1)) AND o.order_hash NOT IN (SELECT value FROM json_each(?2))
		AND o.topic NOT IN (SELECT value FROM json_each(?4)) ORDER BY o.position LIMIT ?3`
	takeDue = `SELECT order_hash, failures FROM semel_outbox_key k WHERE lane IN (SELECT value FROM json_each(?1)) AND order_hash NOT IN (SELECT value FROM json_each(?2))
		AND stopped = 0 AND (retry_at <= ?3 OR retry_at > ?4)
		AND (?6 = '[]' OR (SELECT h.topic FROM semel_outbox_held h WHERE h.order_hash = k.order_hash LIMIT 1) NOT IN (SELECT value FROM json_each(?6))) ORDER BY retry_at LIMIT ?5`
	takeHeld = `SELECT ` + heldColumns + ` FROM semel_outbox_held h WHERE h.order_hash = ? ORDER BY h.position LIMIT ?`
)

// Take implements outbox.Store.
func (b *Outbox) Take(ctx context.Context, lanes []outbox.Lane, busy []int64, paused []string, limit int) ([]outbox.Taken, error) {
	for range mostReads {
		taken, blocked, err := b.look(ctx, lanes, busy, paused, limit)
		if err == nil && len(blocked) > 0 {
			err = b.hold(ctx, blocked)
		}
		if err != nil {
			return nil, err
		}
		if len(taken) > 0 || len(blocked) == 0 {
			return taken, nil
		}
	}
	return nil, nil
}

// mostReads is how often a Take reads again, if it has found only messages to be held.
const mostReads = 100

// look reads messages. The keys of the messages in blocked have failed.
func (b *Outbox) look(ctx context.Context, lanes []outbox.Lane, busy []int64, paused []string, limit int) (taken, blocked []outbox.Taken, err error) {
	err = b.read(ctx, "take", func(tx *sql.Tx) error {
		fences, numbers, err := owned(ctx, tx, lanes)
		if err != nil {
			return err
		}
		busyText, err := json.Marshal(append([]int64{}, busy...))
		if err != nil {
			return err
		}
		pausedText, err := json.Marshal(append([]string{}, paused...))
		if err != nil {
			return err
		}
		again := max(1, limit/4) // messages of keys that have failed
		due, err := dueKeys(ctx, tx, numbers, string(busyText), string(pausedText), again)
		if err != nil {
			return err
		}
		for _, k := range due {
			count := again
			if k.failures > 0 {
				count = 1
			}
			found, err := query(ctx, tx, true, takeHeld, k.order, min(count, again-len(taken)))
			if err != nil {
				return err
			}
			for i := range found {
				found[i].Lane.Fence = fences[found[i].Lane.Number]
				taken = append(taken, found[i].Taken)
			}
		}
		rows, err := tx.QueryContext(ctx, takeWaiting, numbers, string(busyText), max(1, limit-len(taken)), string(pausedText))
		if err != nil {
			return err
		}
		defer rows.Close()
		for rows.Next() {
			var isBlocked bool
			r, err := scan(rows, false, &isBlocked)
			if err != nil {
				return err
			}
			r.Lane.Fence = fences[r.Lane.Number]
			if isBlocked {
				blocked = append(blocked, r.Taken)
			} else {
				taken = append(taken, r.Taken)
			}
		}
		return rows.Err()
	})
	return taken, blocked, err
}

// owned is the lanes that still have their fence, and their numbers in JSON.
func owned(ctx context.Context, tx *sql.Tx, lanes []outbox.Lane) (fences map[int]int64, numbers string, err error) {
	rows, err := readLanes(ctx, tx)
	if err != nil {
		return nil, "", err
	}
	fences = map[int]int64{}
	list := []int{}
	for _, l := range lanes {
		if l.Number < len(rows) && rows[l.Number].Fence == l.Fence {
			fences[l.Number] = l.Fence
			list = append(list, l.Number)
		}
	}
	text, err := json.Marshal(list)
	return fences, string(text), err
}

type dueKey struct {
	order    int64
	failures int
}

func dueKeys(ctx context.Context, tx *sql.Tx, numbers, busy, paused string, limit int) (due []dueKey, err error) {
	now := time.Now()
	rows, err := tx.QueryContext(ctx, takeDue, numbers, busy, now.UnixMicro(), now.Add(outbox.LongestDelay).UnixMicro(), limit, paused)
	if err != nil {
		return nil, err
	}
	defer rows.Close()
	for rows.Next() {
		var k dueKey
		if err := rows.Scan(&k.order, &k.failures); err != nil {
			return nil, err
		}
		due = append(due, k)
	}
	return due, rows.Err()
}

// hold moves messages to the failed ones of their keys, so that the next Take does not
// find them again.
func (b *Outbox) hold(ctx context.Context, messages []outbox.Taken) error {
	return b.write(ctx, "hold", func(tx *sql.Tx) error {
		lanes, err := readLanes(ctx, tx)
		if err != nil {
			return err
		}
		for i := range messages {
			t := &messages[i]
			if lanes[t.Lane.Number].Fence != t.Lane.Fence {
				continue
			}
			var failed bool
			if err := tx.QueryRowContext(ctx, `SELECT EXISTS (SELECT 1 FROM semel_outbox_key WHERE order_hash = ?)`, t.Order).Scan(&failed); err != nil {
				return err
			}
			if !failed {
				continue
			}
			if err := move(ctx, tx, t); err != nil {
				return err
			}
		}
		return nil
	})
}

// move moves a waiting message to the held ones.
func move(ctx context.Context, tx *sql.Tx, t *outbox.Taken) error {
	if _, err := tx.ExecContext(ctx, `INSERT INTO semel_outbox_held (`+movedColumns+`) SELECT `+movedColumns+` FROM semel_outbox WHERE `+same, sameAs(t)...); err != nil {
		return err
	}
	_, err := tx.ExecContext(ctx, `DELETE FROM semel_outbox WHERE `+same, sameAs(t)...)
	return err
}
