package table

import (
	"errors"
	"slices"
	"strings"

	"github.com/jackc/pgx/v5/pgconn"
	"github.com/jackc/pgx/v5/pgtype"

	"github.com/semel-go/semel/store"
	"github.com/semel-go/semel/store/pgstore/internal/pgwire"
)

// Pending is a claim that is not inserted yet.
type Pending struct {
	Proposal store.Proposal
	Record   store.Record
	Columns  StateColumns // of its settlement; see Settle
}

// Settle keeps a settlement, so that the row is inserted as settled.
func (p *Pending) Settle(settlement *store.Settlement) (err error) {
	if p.Columns, err = NewStateColumns(settlement.State, &settlement.Outcome, settlement.Wait, settlement.Keep); err == nil {
		p.Proposal.State, p.Proposal.Attempt, p.Proposal.Error = settlement.State, settlement.Attempt, settlement.Error
		p.Record = settlement.Apply(p.Record, p.Record.Updated)
	}
	return err
}

// InsertRow is a row that a batch inserts.
type InsertRow struct {
	ID pgtype.UUID
	*Pending
}

// maxStatement limits the bytes of outcomes in one statement.
const maxStatement = 64 << 20

// InsertRows are pending rows in parts that fit one statement. They are in the order
// of their ids, so that two transactions that insert the same keys cannot deadlock.
func InsertRows(pending map[pgtype.UUID]*Pending) (parts [][]InsertRow) {
	rows := make([]InsertRow, 0, len(pending))
	for id, claim := range pending {
		rows = append(rows, InsertRow{id, claim})
	}
	slices.SortFunc(rows, func(a, b InsertRow) int { return pgwire.CompareIDs(a.ID, b.ID) })
	start, size := 0, 0
	for i, row := range rows {
		n := len(row.Columns.Body) + len(row.Columns.Header) + len(row.Proposal.Error)
		if size += n; size > maxStatement && i > start {
			parts, start, size = append(parts, rows[start:i]), i, n
		}
	}
	if len(rows) > 0 {
		parts = append(parts, rows[start:])
	}
	return parts
}

// Alike reports whether claims differ only in key values, owners and fingerprints.
func Alike(p, q *store.Proposal) bool {
	return p.State == q.State && p.Policy == q.Policy && p.Attempt == q.Attempt && p.Keep == q.Keep &&
		p.Key.Operation == q.Key.Operation && p.Key.Tenant == q.Key.Tenant && p.Holder == q.Holder &&
		p.Fingerprint.Alg == q.Fingerprint.Alg && p.Fingerprint.KeyID == q.Fingerprint.KeyID && p.Error == q.Error
}

// InsertArrays are the parameters of the statement InsertMany. If a column has the
// same value in all rows, its array has one element, and the statement repeats it.
func InsertArrays(rows []InsertRow) []any {
	return []any{
		pgwire.Pointers(rows, func(r *InsertRow) pgtype.UUID { return r.ID }),
		pgwire.Pointers(rows, func(r *InsertRow) pgtype.UUID { return Owner(r.Proposal.Owner) }),
		pgwire.Once(rows, func(r *InsertRow) int16 { return int16(r.Proposal.State) }),
		pgwire.Once(rows, func(r *InsertRow) int16 { return int16(r.Proposal.Policy) }),
		pgwire.Once(rows, func(r *InsertRow) int64 { return int64(r.Proposal.Attempt) }),
		pgwire.Once(rows, func(r *InsertRow) int64 { return orMinusOne(r.Columns.Until) }),
		pgwire.Once(rows, func(r *InsertRow) int64 { return orMinusOne(r.Columns.Expires) }),
		pgwire.TextOnce(rows, func(r *InsertRow) string { return r.Proposal.Key.Operation }),
		pgwire.TextOnce(rows, func(r *InsertRow) string { return r.Proposal.Key.Tenant }),
		pgwire.Texts(rows, func(r *InsertRow) string { return r.Proposal.Key.Value }),
		pgwire.TextOnce(rows, func(r *InsertRow) string { return r.Proposal.Holder }),
		pgwire.TextOnce(rows, func(r *InsertRow) string { return r.Proposal.Fingerprint.Alg }),
		pgwire.TextOnce(rows, func(r *InsertRow) string { return r.Proposal.Fingerprint.KeyID }),
		pgwire.TextOnce(rows, func(r *InsertRow) string { return r.Proposal.Fingerprint.Sum }),
		pgwire.TextOnce(rows, func(r *InsertRow) string { return r.Proposal.Error }),
		pgwire.Once(rows, func(r *InsertRow) int64 { return r.Columns.Code }),
		pgwire.Once(rows, func(r *InsertRow) bool { return r.Columns.Gone }),
		pgwire.OrNulls(rows, func(r *InsertRow) []byte { return r.Columns.Codec }),
		pgwire.OrNulls(rows, func(r *InsertRow) []byte { return r.Columns.Header }),
		pgwire.OrNulls(rows, func(r *InsertRow) []byte { return r.Columns.Body }),
		pgwire.Once(rows, func(r *InsertRow) int64 { return store.Micros(r.Record.Created) }),
		pgwire.Once(rows, func(r *InsertRow) int64 { return Fence(r.Record.Fence) }),
	}
}

// orMinusOne is a duration, or -1 if there is none.
func orMinusOne(d pgtype.Int8) int64 {
	if !d.Valid {
		return -1
	}
	return d.Int64
}

// LostRace reports whether another transaction has inserted the record of the key.
func LostRace(err error) bool {
	e, ok := errors.AsType[*pgconn.PgError](err)
	return ok && e.Code == pgwire.UniqueViolation && (e.TableName == Name || strings.HasPrefix(e.TableName, Name+"_p")) // also a partition
}
