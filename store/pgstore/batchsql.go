package pgstore

import (
	"context"
	"slices"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgtype"

	"github.com/semel-go/semel/store"
	"github.com/semel-go/semel/store/pgstore/internal/pgwire"
	"github.com/semel-go/semel/store/pgstore/internal/table"
)

// The statements of gather, keeps and takeAny are planned once for a connection:
// that costs as much as some fifty keys. A plan that was made while the table was
// small, and kept, would read all of it for each key, but for what is turned off.
// What follows in the transaction is as it was set.
const (
	plansForAll = `SELECT set_config('semel.plans', current_setting('plan_cache_mode'), true), set_config('semel.scans', current_setting('enable_seqscan'), true),
		set_config('plan_cache_mode', 'force_generic_plan', true), set_config('enable_seqscan', 'off', true)`
	plansAsBefore = `SELECT set_config('plan_cache_mode', current_setting('semel.plans'), true), set_config('enable_seqscan', current_setting('semel.scans'), true)`
)

// gather is look for many keys, in one statement. What it finds is for the
// next claim of each.
func (t *storeTx) gather(ctx context.Context, keys []pgtype.UUID) error {
	if len(keys) == 0 {
		return nil
	}
	t.looks = make(map[pgtype.UUID]*looked, len(keys))
	ids, highs, lows := make([]pgtype.UUID, 0, len(keys)), make([]int32, 0, len(keys)), make([]int32, 0, len(keys))
	for _, id := range keys {
		if _, twice := t.looks[id]; !twice {
			high, low := t.s.lockOf(id)
			ids, highs, lows, t.looks[id] = append(ids, id), append(highs, high), append(lows, low), nil
		}
	}
	free := &looked{locked: true}
	var of pgtype.UUID
	t.line.Push(plansForAll, nil, nil)
	t.line.Push(t.db.sql.LockMany, []any{pgwire.Pointers(ids, func(id *pgtype.UUID) pgtype.UUID { return *id }), pgwire.Array(highs), pgwire.Array(lows), t.idle}, func(res pgx.BatchResults) error {
		rows, err := res.Query()
		if err != nil {
			return err
		}
		defer rows.Close()
		for rows.Next() {
			var l looked
			var id pgtype.UUID
			var locked pgtype.Bool
			if err := rows.Scan(l.w.Fields(&free.now, &free.swept, &of, &id, &locked)...); err != nil {
				return err
			}
			if id.Valid {
				l.locked, l.now, l.swept = locked.Bool, free.now, free.swept
				t.looks[id] = &l
			}
		}
		return rows.Err()
	})
	t.line.Push(plansAsBefore, nil, nil)
	if err := t.s.isOurs(t.line.Flush(ctx), of); err != nil {
		return err
	}
	for id, l := range t.looks {
		if l == nil {
			t.looks[id] = free
		}
	}
	return nil
}

// settle holds back how a claim ended, until writeHeld.
func (is *pending) settle(s *store.Settlement) (err error) {
	if is.end, err = table.NewStateColumns(s.State, &s.Outcome, s.Wait, s.Keep); err == nil {
		is.p.State, is.p.Attempt, is.p.Error = s.State, s.Attempt, s.Error
		is.r = s.Apply(is.r, is.r.Updated)
	}
	return err
}

// maxStatement is how many bytes of outcomes go in one statement.
const maxStatement = 64 << 20

// writeHeld queues the rows of what is pending, in the order of their ids: two
// transactions that insert the same keys meet them in the same order.
func (t *storeTx) writeHeld() {
	for _, rows := range t.held() {
		if areAlike(rows) {
			t.line.Push(t.db.sql.InsertAlike, alikeArrays(rows), nil)
		} else {
			t.line.Push(t.db.sql.InsertMany, insertArrays(rows), nil)
		}
	}
}

// held are the pending rows in order, in parts that fit a statement.
func (t *storeTx) held() (parts [][]heldRow) {
	rows := make([]heldRow, 0, len(t.pending))
	for id, is := range t.pending {
		rows = append(rows, heldRow{id, is})
	}
	slices.SortFunc(rows, func(a, b heldRow) int { return pgwire.CompareIDs(a.id, b.id) })
	from, size := 0, 0
	for i, h := range rows {
		n := len(h.end.Body) + len(h.end.Header) + len(h.p.Error)
		if size += n; size > maxStatement && i > from {
			parts, from, size = append(parts, rows[from:i]), i, n
		}
	}
	if len(rows) > 0 {
		parts = append(parts, rows[from:])
	}
	return parts
}

// heldRow is a row that a batch inserts.
type heldRow struct {
	id pgtype.UUID
	*pending
}

// areAlike reports whether rows differ in their keys, owners and fingerprints
// only, and have no outcome: as those of most batches.
func areAlike(rows []heldRow) bool {
	first := rows[0]
	return !slices.ContainsFunc(rows, func(h heldRow) bool {
		e := &h.end
		return e.Code != 0 || e.Gone || e.Codec != nil || e.Header != nil || e.Body != nil ||
			e.Until != first.end.Until || e.Expires != first.end.Expires ||
			h.p.State != first.p.State || h.p.Policy != first.p.Policy || h.p.Attempt != first.p.Attempt ||
			h.p.Key.Operation != first.p.Key.Operation || h.p.Key.Tenant != first.p.Key.Tenant || h.p.Holder != first.p.Holder ||
			h.p.Fingerprint.Alg != first.p.Fingerprint.Alg || h.p.Fingerprint.KeyID != first.p.Fingerprint.KeyID || h.p.Error != first.p.Error ||
			h.r.Fence != first.r.Fence || !h.r.Created.Equal(first.r.Created)
	})
}

// alikeArrays are the parameters of a batch's insert of such rows.
func alikeArrays(rows []heldRow) []any {
	h := rows[0]
	return []any{
		pgwire.Pointers(rows, func(r *heldRow) pgtype.UUID { return r.id }),
		pgwire.Pointers(rows, func(r *heldRow) pgtype.UUID { return table.Owner(r.p.Owner) }),
		pgwire.Texts(rows, func(r *heldRow) string { return r.p.Key.Value }),
		pgwire.Texts(rows, func(r *heldRow) string { return r.p.Fingerprint.Sum }),
		int16(h.p.State), int16(h.p.Policy), int64(h.p.Attempt), h.end.Until, h.end.Expires,
		[]byte(h.p.Key.Operation), []byte(h.p.Key.Tenant), []byte(h.p.Holder), []byte(h.p.Fingerprint.Alg), []byte(h.p.Fingerprint.KeyID),
		[]byte(h.p.Error), store.Micros(h.r.Created), table.Fence(h.r.Fence),
	}
}

// insertArrays are the parameters of a batch's insert. A column that is the
// same in all rows has one value: the statement repeats it.
func insertArrays(rows []heldRow) []any {
	return []any{
		pgwire.Pointers(rows, func(r *heldRow) pgtype.UUID { return r.id }),
		pgwire.Pointers(rows, func(r *heldRow) pgtype.UUID { return table.Owner(r.p.Owner) }),
		pgwire.Once(rows, func(r *heldRow) int16 { return int16(r.p.State) }),
		pgwire.Once(rows, func(r *heldRow) int16 { return int16(r.p.Policy) }),
		pgwire.Once(rows, func(r *heldRow) int64 { return int64(r.p.Attempt) }),
		pgwire.Once(rows, func(r *heldRow) int64 { return orMinus(r.end.Until) }),
		pgwire.Once(rows, func(r *heldRow) int64 { return orMinus(r.end.Expires) }),
		pgwire.TextOnce(rows, func(r *heldRow) string { return r.p.Key.Operation }),
		pgwire.TextOnce(rows, func(r *heldRow) string { return r.p.Key.Tenant }),
		pgwire.Texts(rows, func(r *heldRow) string { return r.p.Key.Value }),
		pgwire.TextOnce(rows, func(r *heldRow) string { return r.p.Holder }),
		pgwire.TextOnce(rows, func(r *heldRow) string { return r.p.Fingerprint.Alg }),
		pgwire.TextOnce(rows, func(r *heldRow) string { return r.p.Fingerprint.KeyID }),
		pgwire.TextOnce(rows, func(r *heldRow) string { return r.p.Fingerprint.Sum }),
		pgwire.TextOnce(rows, func(r *heldRow) string { return r.p.Error }),
		pgwire.Once(rows, func(r *heldRow) int64 { return r.end.Code }),
		pgwire.Once(rows, func(r *heldRow) bool { return r.end.Gone }),
		pgwire.OrNulls(rows, func(r *heldRow) []byte { return r.end.Codec }),
		pgwire.OrNulls(rows, func(r *heldRow) []byte { return r.end.Header }),
		pgwire.OrNulls(rows, func(r *heldRow) []byte { return r.end.Body }),
		pgwire.Once(rows, func(r *heldRow) int64 { return store.Micros(r.r.Created) }),
		pgwire.Once(rows, func(r *heldRow) int64 { return table.Fence(r.r.Fence) }),
	}
}

// orMinus is a duration, or -1 if there is none.
func orMinus(d pgtype.Int8) int64 {
	if !d.Valid {
		return -1
	}
	return d.Int64
}
