package table

import (
	"strings"

	"github.com/semel-go/semel/store"
)

// The table semel_doubt has the ids of the records in doubt, whose state is Unknown, so
// that a list of them does not read the others. A partial index would do the same, but
// each settlement would write all indexes (no HOT update), because the state is in the
// index's condition. A trigger would cost each claim and each settlement some
// microseconds. The statements below are sent instead of the usual ones only if a
// record comes into doubt or leaves it, and change both tables.

const (
	addDoubt  = `INSERT INTO {s}.semel_doubt (record) SELECT id FROM u ON CONFLICT DO NOTHING`
	endDoubt  = `DELETE FROM {s}.semel_doubt s USING u WHERE s.record = u.id`
	dropSteps = `DELETE FROM {s}.semel_step s USING u WHERE s.record = u.id`

	// addDoubts is for the rows that the same transaction inserts.
	addDoubts = `INSERT INTO {s}.semel_doubt (record) SELECT unnest($1::uuid[]) ON CONFLICT DO NOTHING`

	// listDoubts returns a row of nulls for an id whose record is not in doubt, which
	// only a change by hand can cause.
	listDoubts = `WITH c AS MATERIALIZED (SELECT {now} AS now),
		d AS MATERIALIZED (SELECT record FROM {s}.semel_doubt WHERE record > $1::uuid ORDER BY record LIMIT $2::bigint)
		SELECT c.now, d.record, {r.cols} FROM c CROSS JOIN d LEFT JOIN {s}.semel_record r ON r.id = d.record AND r.state = 6 ORDER BY d.record`
)

// doubtStatements are the statements for records that come into doubt or leave it.
type doubtStatements struct {
	ClaimDoubt, SettleDoubt, AddDoubts, ListDoubts                     string
	SwapIntoDoubt, SwapOutOfDoubt, RestartIntoDoubt, RestartOutOfDoubt string
}

// with is a statement that changes a row and returns it with its id as the last
// column, followed by statements that use u, the row that was changed.
func with(change string, then ...string) string {
	var b strings.Builder
	b.WriteString("WITH u AS (" + change + ")")
	for i, statement := range then {
		b.WriteString(",\n\t\tu" + string(rune('1'+i)) + " AS (" + statement + ")")
	}
	return b.String() + "\n\t\tSELECT * FROM u"
}

// addDoubtStatements makes them from the statements for other records.
func (st *Statements) addDoubtStatements() {
	st.AddDoubts, st.ListDoubts = addDoubts, listDoubts
	st.Receive, st.ReceiveDoubt, st.ReceiveStep = with(receive, dropSteps, endDoubt), with(receive, dropSteps, addDoubt), receiveStep
	st.SettleDoubt = with(st.Settle+" RETURNING r.id", addDoubt)
	const inserted = "ON CONFLICT (id) DO NOTHING RETURNING fence{relax})"
	st.ClaimDoubt = strings.Replace(st.Claim, inserted, inserted+`,
			d AS (INSERT INTO {s}.semel_doubt (record) SELECT $1::uuid FROM ins ON CONFLICT DO NOTHING)`, 1)
	swap := strings.Replace(st.Swap, "r.fence{relax}", "r.fence{relax}, r.id", 1)
	st.Restart, st.SwapIntoDoubt, st.SwapOutOfDoubt = with(swap, dropSteps), with(swap, addDoubt), with(swap, endDoubt)
	st.RestartIntoDoubt, st.RestartOutOfDoubt = with(swap, dropSteps, addDoubt), with(swap, dropSteps, endDoubt)
}

// SwapOf is the statement for a swap between two states. If returnsID, the id is its
// last column.
func (st *Statements) SwapOf(from, to store.State, restart bool) (statement string, returnsID bool) {
	into, outOf := to == store.Unknown, from == store.Unknown && to != store.Unknown
	switch {
	case into && restart:
		return st.RestartIntoDoubt, true
	case into:
		return st.SwapIntoDoubt, true
	case outOf && restart:
		return st.RestartOutOfDoubt, true
	case outOf:
		return st.SwapOutOfDoubt, true
	case restart:
		return st.Restart, true
	}
	return st.Swap, false
}

// StateBits has one bit for each state; 0 selects all.
func StateBits(states []store.State) (bits int64) {
	for _, st := range states {
		if st.Valid() {
			bits |= 1 << st
		} else {
			bits |= 1 // the bit of no state
		}
	}
	return bits
}
