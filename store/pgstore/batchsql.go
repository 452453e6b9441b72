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

// The statements LockMany, FindCompleted and LockAndInsert are planned once for each
// connection, because planning one costs as much as about fifty keys. A generic plan
// that was made while the table was small would read the whole table for each key,
// unless sequential scans are off. restorePlans restores the settings for later
// statements of the transaction.
const (
	useGenericPlans = `SELECT set_config('semel.plans', current_setting('plan_cache_mode'), true), set_config('semel.scans', current_setting('enable_seqscan'), true),
		set_config('plan_cache_mode', 'force_generic_plan', true), set_config('enable_seqscan', 'off', true)`
	restorePlans = `SELECT set_config('plan_cache_mode', current_setting('semel.plans'), true), set_config('enable_seqscan', current_setting('semel.scans'), true)`
)

// lookUpMany is lookUp for many keys in one statement. The next claim of each key uses
// the result.
func (t *storeTx) lookUpMany(ctx context.Context, keys []pgtype.UUID) error {
	if len(keys) == 0 {
		return nil
	}
	t.keyStates = make(map[pgtype.UUID]*keyState, len(keys))
	ids, highs, lows := make([]pgtype.UUID, 0, len(keys)), make([]int32, 0, len(keys)), make([]int32, 0, len(keys))
	for _, id := range keys {
		if _, twice := t.keyStates[id]; !twice {
			high, low := t.store.lockOf(id)
			ids, highs, lows, t.keyStates[id] = append(ids, id), append(highs, high), append(lows, low), nil
		}
	}
	freeState := &keyState{locked: true}
	var storeID pgtype.UUID
	t.pipeline.Push(useGenericPlans, nil, nil)
	t.pipeline.Push(t.session.sql.LockMany, []any{pgwire.Pointers(ids, func(id *pgtype.UUID) pgtype.UUID { return *id }), pgwire.Array(highs), pgwire.Array(lows), t.idleTimeout}, func(res pgx.BatchResults) error {
		rows, err := res.Query()
		if err != nil {
			return err
		}
		defer rows.Close()
		for rows.Next() {
			var state keyState
			var id pgtype.UUID
			var locked pgtype.Bool
			if err := rows.Scan(state.row.Fields(&freeState.now, &freeState.sweptFence, &storeID, &id, &locked)...); err != nil {
				return err
			}
			if id.Valid {
				state.locked, state.now, state.sweptFence = locked.Bool, freeState.now, freeState.sweptFence
				t.keyStates[id] = &state
			}
		}
		return rows.Err()
	})
	t.pipeline.Push(restorePlans, nil, nil)
	if err := t.store.checkStore(t.pipeline.Flush(ctx), storeID); err != nil {
		return err
	}
	for id, state := range t.keyStates {
		if state == nil {
			t.keyStates[id] = freeState
		}
	}
	return nil
}

// settle keeps the settlement of a claim until queueInserts.
func (p *pending) settle(settlement *store.Settlement) (err error) {
	if p.columns, err = table.NewStateColumns(settlement.State, &settlement.Outcome, settlement.Wait, settlement.Keep); err == nil {
		p.proposal.State, p.proposal.Attempt, p.proposal.Error = settlement.State, settlement.Attempt, settlement.Error
		p.record = settlement.Apply(p.record, p.record.Updated)
	}
	return err
}

// maxStatement limits the bytes of outcomes in one statement.
const maxStatement = 64 << 20

// queueInserts queues the inserts of the pending rows in the order of their ids, so
// that two transactions that insert the same keys cannot deadlock.
func (t *storeTx) queueInserts() {
	for _, rows := range t.insertRows() {
		if allAlike(rows) {
			t.pipeline.Push(t.session.sql.InsertAlike, alikeArrays(rows), nil)
		} else {
			t.pipeline.Push(t.session.sql.InsertMany, insertArrays(rows), nil)
		}
	}
}

// insertRows are the pending rows in order, in parts that fit one statement.
func (t *storeTx) insertRows() (parts [][]insertRow) {
	rows := make([]insertRow, 0, len(t.pending))
	for id, claim := range t.pending {
		rows = append(rows, insertRow{id, claim})
	}
	slices.SortFunc(rows, func(a, b insertRow) int { return pgwire.CompareIDs(a.id, b.id) })
	start, size := 0, 0
	for i, row := range rows {
		n := len(row.columns.Body) + len(row.columns.Header) + len(row.proposal.Error)
		if size += n; size > maxStatement && i > start {
			parts, start, size = append(parts, rows[start:i]), i, n
		}
	}
	if len(rows) > 0 {
		parts = append(parts, rows[start:])
	}
	return parts
}

// insertRow is a row that a batch inserts.
type insertRow struct {
	id pgtype.UUID
	*pending
}

// allAlike reports whether the rows differ only in key, owner and fingerprint, and
// have no outcome. The rows of most batches do.
func allAlike(rows []insertRow) bool {
	first := rows[0]
	return !slices.ContainsFunc(rows, func(row insertRow) bool {
		columns := &row.columns
		return columns.Code != 0 || columns.Gone || columns.Codec != nil || columns.Header != nil || columns.Body != nil ||
			columns.Until != first.columns.Until || columns.Expires != first.columns.Expires ||
			row.proposal.State != first.proposal.State || row.proposal.Policy != first.proposal.Policy || row.proposal.Attempt != first.proposal.Attempt ||
			row.proposal.Key.Operation != first.proposal.Key.Operation || row.proposal.Key.Tenant != first.proposal.Key.Tenant || row.proposal.Holder != first.proposal.Holder ||
			row.proposal.Fingerprint.Alg != first.proposal.Fingerprint.Alg || row.proposal.Fingerprint.KeyID != first.proposal.Fingerprint.KeyID || row.proposal.Error != first.proposal.Error ||
			row.record.Fence != first.record.Fence || !row.record.Created.Equal(first.record.Created)
	})
}

// alikeArrays are the parameters of the statement InsertAlike.
func alikeArrays(rows []insertRow) []any {
	first := rows[0]
	return []any{
		pgwire.Pointers(rows, func(r *insertRow) pgtype.UUID { return r.id }),
		pgwire.Pointers(rows, func(r *insertRow) pgtype.UUID { return table.Owner(r.proposal.Owner) }),
		pgwire.Texts(rows, func(r *insertRow) string { return r.proposal.Key.Value }),
		pgwire.Texts(rows, func(r *insertRow) string { return r.proposal.Fingerprint.Sum }),
		int16(first.proposal.State), int16(first.proposal.Policy), int64(first.proposal.Attempt), first.columns.Until, first.columns.Expires,
		[]byte(first.proposal.Key.Operation), []byte(first.proposal.Key.Tenant), []byte(first.proposal.Holder), []byte(first.proposal.Fingerprint.Alg), []byte(first.proposal.Fingerprint.KeyID),
		[]byte(first.proposal.Error), store.Micros(first.record.Created), table.Fence(first.record.Fence),
	}
}

// insertArrays are the parameters of the statement InsertMany. If a column has the
// same value in all rows, its array has one element, and the statement repeats it.
func insertArrays(rows []insertRow) []any {
	return []any{
		pgwire.Pointers(rows, func(r *insertRow) pgtype.UUID { return r.id }),
		pgwire.Pointers(rows, func(r *insertRow) pgtype.UUID { return table.Owner(r.proposal.Owner) }),
		pgwire.Once(rows, func(r *insertRow) int16 { return int16(r.proposal.State) }),
		pgwire.Once(rows, func(r *insertRow) int16 { return int16(r.proposal.Policy) }),
		pgwire.Once(rows, func(r *insertRow) int64 { return int64(r.proposal.Attempt) }),
		pgwire.Once(rows, func(r *insertRow) int64 { return orMinusOne(r.columns.Until) }),
		pgwire.Once(rows, func(r *insertRow) int64 { return orMinusOne(r.columns.Expires) }),
		pgwire.TextOnce(rows, func(r *insertRow) string { return r.proposal.Key.Operation }),
		pgwire.TextOnce(rows, func(r *insertRow) string { return r.proposal.Key.Tenant }),
		pgwire.Texts(rows, func(r *insertRow) string { return r.proposal.Key.Value }),
		pgwire.TextOnce(rows, func(r *insertRow) string { return r.proposal.Holder }),
		pgwire.TextOnce(rows, func(r *insertRow) string { return r.proposal.Fingerprint.Alg }),
		pgwire.TextOnce(rows, func(r *insertRow) string { return r.proposal.Fingerprint.KeyID }),
		pgwire.TextOnce(rows, func(r *insertRow) string { return r.proposal.Fingerprint.Sum }),
		pgwire.TextOnce(rows, func(r *insertRow) string { return r.proposal.Error }),
		pgwire.Once(rows, func(r *insertRow) int64 { return r.columns.Code }),
		pgwire.Once(rows, func(r *insertRow) bool { return r.columns.Gone }),
		pgwire.OrNulls(rows, func(r *insertRow) []byte { return r.columns.Codec }),
		pgwire.OrNulls(rows, func(r *insertRow) []byte { return r.columns.Header }),
		pgwire.OrNulls(rows, func(r *insertRow) []byte { return r.columns.Body }),
		pgwire.Once(rows, func(r *insertRow) int64 { return store.Micros(r.record.Created) }),
		pgwire.Once(rows, func(r *insertRow) int64 { return table.Fence(r.record.Fence) }),
	}
}

// orMinusOne is a duration, or -1 if there is none.
func orMinusOne(d pgtype.Int8) int64 {
	if !d.Valid {
		return -1
	}
	return d.Int64
}
