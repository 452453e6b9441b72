package sqliteoutbox

import (
	"context"
	"database/sql"
	"fmt"
	"strings"
	"time"

	"github.com/semel-go/semel/outbox"
)

const countAll = `SELECT (SELECT count(*) FROM semel_outbox), (SELECT count(*) FROM semel_outbox_held WHERE quarantined = 0),
	(SELECT count(*) FROM semel_outbox_held WHERE quarantined = 1), (SELECT count(*) FROM semel_outbox_key WHERE stopped = 1),
	(SELECT written FROM semel_outbox ORDER BY position LIMIT 1), (SELECT min(written) FROM semel_outbox_held WHERE quarantined = 0)`

// Stats implements outbox.Inspector. It reads the messages that are not sent, so its cost
// grows with their number.
func (b *Outbox) Stats(ctx context.Context) (s outbox.Stats, err error) {
	err = b.read(ctx, "stats", func(tx *sql.Tx) error {
		var waiting, held sql.NullInt64
		if err := tx.QueryRowContext(ctx, countAll).Scan(&s.Waiting, &s.Held, &s.Quarantined, &s.StoppedKeys, &waiting, &held); err != nil {
			return err
		}
		for _, written := range []sql.NullInt64{waiting, held} {
			if written.Valid {
				s.OldestAge = max(s.OldestAge, time.Since(time.UnixMicro(written.Int64)))
			}
		}
		return nil
	})
	return s, err
}

// The queries for the messages of each state.
var lists = map[outbox.State]string{
	outbox.Waiting:     `SELECT ` + waitingColumns + ` FROM semel_outbox o WHERE o.position > ? ORDER BY o.position LIMIT ?`,
	outbox.Held:        `SELECT ` + heldColumns + ` FROM semel_outbox_held h WHERE h.position > ? AND h.quarantined = 0 ORDER BY h.position LIMIT ?`,
	outbox.Quarantined: `SELECT ` + heldColumns + ` FROM semel_outbox_held h WHERE h.position > ? AND h.quarantined = 1 ORDER BY h.position LIMIT ?`,
	outbox.Sent:        `SELECT ` + sentColumns + ` FROM semel_outbox_sent s WHERE s.position > ? ORDER BY s.position LIMIT ?`,
}

// List implements outbox.Inspector.
func (b *Outbox) List(ctx context.Context, state outbox.State, after int64, limit int) (entries []outbox.Entry, err error) {
	text, ok := lists[state]
	if !ok {
		return nil, fmt.Errorf("sqliteoutbox: list: %v is no state", state)
	}
	err = b.read(ctx, "list", func(tx *sql.Tx) error {
		found, err := query(ctx, tx, state == outbox.Held, noBody(text), after, limit)
		for i := range found {
			entries = append(entries, found[i].Entry)
		}
		return err
	})
	return entries, err
}

// The queries for the messages of calls, in the order of Inspector.ListCall. Each reads an
// index of call_hash, in which the rows of one call are in the order of their positions.
var callLists = []struct {
	state outbox.State
	text  string
}{
	{outbox.Quarantined, `SELECT ` + heldColumns + ` FROM semel_outbox_held h WHERE h.call_hash >= ? AND h.call_hash <= ? AND h.quarantined = 1 ORDER BY h.call_hash, h.position LIMIT ?`},
	{outbox.Held, `SELECT ` + heldColumns + ` FROM semel_outbox_held h WHERE h.call_hash >= ? AND h.call_hash <= ? AND h.quarantined = 0 ORDER BY h.call_hash, h.position LIMIT ?`},
	{outbox.Waiting, `SELECT ` + waitingColumns + ` FROM semel_outbox o WHERE o.call_hash >= ? AND o.call_hash <= ? ORDER BY o.call_hash, o.position LIMIT ?`},
	{outbox.Sent, `SELECT ` + sentColumns + ` FROM semel_outbox_sent s WHERE s.call_hash >= ? AND s.call_hash <= ? ORDER BY s.call_hash, s.position LIMIT ?`},
}

// ListCall implements outbox.Inspector.
func (b *Outbox) ListCall(ctx context.Context, hash string, limit int) (entries []outbox.Entry, err error) {
	first, last, err := outbox.CallRange(hash)
	if err != nil {
		return nil, err
	}
	err = b.read(ctx, "list", func(tx *sql.Tx) error {
		for _, l := range callLists {
			found, err := query(ctx, tx, l.state == outbox.Held, noBody(l.text), first, last, limit-len(entries))
			if err != nil {
				return err
			}
			for i := range found {
				entries = append(entries, found[i].Entry)
			}
		}
		return nil
	})
	return entries, err
}

// noBody leaves the body out of a query.
func noBody(text string) string {
	return strings.NewReplacer("o.body", "NULL", "h.body", "NULL", "s.body", "NULL").Replace(text)
}

// find finds a message. Waiting and sent messages have no attempts.
func find(ctx context.Context, tx *sql.Tx, position int64) (*outbox.Taken, error) {
	for _, state := range []outbox.State{outbox.Waiting, outbox.Held, outbox.Quarantined, outbox.Sent} {
		found, err := query(ctx, tx, state == outbox.Held, lists[state], position-1, 1)
		if err != nil {
			return nil, err
		}
		if len(found) == 1 && found[0].Position == position {
			return &found[0].Taken, nil
		}
	}
	return nil, fmt.Errorf("%w: position %d", outbox.ErrNotFound, position)
}

// Get implements outbox.Inspector.
func (b *Outbox) Get(ctx context.Context, position int64) (e outbox.Entry, err error) {
	err = b.read(ctx, "get", func(tx *sql.Tx) error {
		t, err := find(ctx, tx, position)
		if err == nil {
			e = t.Entry
		}
		return err
	})
	return e, err
}

// Retry implements outbox.Inspector.
func (b *Outbox) Retry(ctx context.Context, position int64) error {
	return b.write(ctx, "retry", func(tx *sql.Tx) error {
		t, err := find(ctx, tx, position)
		if err != nil {
			return err
		}
		if t.State != outbox.Held && t.State != outbox.Quarantined {
			return fmt.Errorf("%w: position %d is neither held nor in the quarantine", outbox.ErrState, position)
		}
		if _, err := tx.ExecContext(ctx, `UPDATE semel_outbox_held SET quarantined = 0 WHERE order_hash = ? AND quarantined = 1`, t.Order); err != nil {
			return err
		}
		_, err = tx.ExecContext(ctx, `UPDATE semel_outbox_key SET stopped = 0, retry_at = 0 WHERE order_hash = ?`, t.Order)
		return err
	})
}

// Drop implements outbox.Inspector.
func (b *Outbox) Drop(ctx context.Context, position int64) error {
	return b.write(ctx, "drop", func(tx *sql.Tx) error {
		t, err := find(ctx, tx, position)
		if err != nil {
			return err
		}
		switch t.State {
		case outbox.Waiting:
			_, err := tx.ExecContext(ctx, `DELETE FROM semel_outbox WHERE position = ?`, position)
			return err
		case outbox.Sent:
			return fmt.Errorf("%w: position %d is sent", outbox.ErrState, position)
		}
		if _, err := tx.ExecContext(ctx, `DELETE FROM semel_outbox_held WHERE position = ?`, position); err != nil {
			return err
		}
		return resumeKey(ctx, tx, t.Order, position)
	})
}
