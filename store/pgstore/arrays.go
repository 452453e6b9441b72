package pgstore

import (
	"bytes"
	"slices"

	"github.com/jackc/pgx/v5/pgtype"
)

// column is one parameter of a batch statement: a value for each request.
func column[T, V any](from []T, value func(T) V) []V {
	vs := make([]V, len(from))
	for i, f := range from {
		vs[i] = value(f)
	}
	return vs
}

func compareIDs(a, b pgtype.UUID) int { return bytes.Compare(a.Bytes[:], b.Bytes[:]) }

// claimRow is a claim in a batch.
type claimRow struct {
	id  pgtype.UUID
	end end
	it  *claimItem
}

// claimArrays are the parameters of a batch of claims in the order of their
// ids: two batches meet the same rows in the same order. A column that is the
// same in all rows has one value: the statement repeats it.
func claimArrays(byID map[pgtype.UUID]*claimItem) []any {
	rows := make([]claimRow, 0, len(byID))
	for id, it := range byID {
		e, _ := newEnd(it.Req.State, &it.Req.Outcome, it.Req.Lease, it.Req.Keep) // fails for outcomes only
		rows = append(rows, claimRow{id, e, it})
	}
	slices.SortFunc(rows, func(a, b claimRow) int { return compareIDs(a.id, b.id) })
	return []any{
		pointers(rows, func(r *claimRow) pgtype.UUID { return r.id }),
		pointers(rows, func(r *claimRow) pgtype.UUID { return ownerOf(r.it.Req.Owner) }),
		once(rows, func(r *claimRow) int16 { return int16(r.it.Req.State) }),
		once(rows, func(r *claimRow) int16 { return int16(r.it.Req.Policy) }),
		once(rows, func(r *claimRow) int64 { return int64(r.it.Req.Attempt) }),
		once(rows, func(r *claimRow) int64 { return r.end.until.Int64 }),
		textOnce(rows, func(r *claimRow) string { return r.it.Req.Key.Operation }),
		textOnce(rows, func(r *claimRow) string { return r.it.Req.Key.Tenant }),
		texts(rows, func(r *claimRow) string { return r.it.Req.Key.Value }),
		textOnce(rows, func(r *claimRow) string { return r.it.Req.Holder }),
		textOnce(rows, func(r *claimRow) string { return r.it.Req.Fingerprint.Alg }),
		textOnce(rows, func(r *claimRow) string { return r.it.Req.Fingerprint.KeyID }),
		textOnce(rows, func(r *claimRow) string { return r.it.Req.Fingerprint.Sum }),
		textOnce(rows, func(r *claimRow) string { return r.it.Req.Error }),
	}
}

// settleArrays are the parameters of a batch of settlements, in the order of
// their ids, with one value for a column that is the same in all.
func settleArrays(batch []*settleItem) []any {
	rows := column(batch, func(it *settleItem) *settleRequest { return it.Req })
	slices.SortFunc(rows, func(a, b *settleRequest) int { return compareIDs(a.id, b.id) })
	type request = *settleRequest
	return []any{
		pointers(rows, func(r *request) pgtype.UUID { return (*r).id }),
		pointers(rows, func(r *request) pgtype.UUID { return ownerOf((*r).lease.Owner) }),
		pointers(rows, func(r *request) pgtype.Int8 { return pgtype.Int8{Int64: fenceOf((*r).lease.Fence), Valid: true} }),
		once(rows, func(r *request) int16 { return int16((*r).t.State) }),
		once(rows, func(r *request) int64 { return int64((*r).t.Attempt) }),
		once(rows, func(r *request) int64 { return orNever((*r).end.until) }),
		once(rows, func(r *request) int64 { return orNever((*r).end.expires) }),
		textOnce(rows, func(r *request) string { return (*r).t.Error }),
		once(rows, func(r *request) int64 { return (*r).end.code }),
		once(rows, func(r *request) bool { return (*r).end.gone }),
		orNulls(rows, func(r *request) []byte { return (*r).end.codec }),
		orNulls(rows, func(r *request) []byte { return (*r).end.header }),
		orNulls(rows, func(r *request) []byte { return (*r).end.body }),
	}
}

// What follows makes arrays that pgx encodes without reflection.

// array is the values as one array.
func array[V any](values []V) pgtype.Array[V] {
	return pgtype.Array[V]{Elements: values, Valid: true, Dims: []pgtype.ArrayDimension{{Length: int32(len(values)), LowerBound: 1}}} //nolint:gosec // a batch is small
}

// pointers is a column of what costs nothing to pass on by its address.
func pointers[T, V any](rows []T, value func(*T) V) pgtype.Array[*V] {
	values, to := make([]V, len(rows)), make([]*V, len(rows))
	for i := range rows {
		values[i] = value(&rows[i])
		to[i] = &values[i]
	}
	return array(to)
}

// once is a column, or its one value if all are equal.
func once[T any, V comparable](rows []T, value func(*T) V) pgtype.Array[V] {
	n := len(rows)
	if same(rows, value) {
		n = 1
	}
	values := make([]V, n)
	for i := range values {
		values[i] = value(&rows[i])
	}
	return array(values)
}

func same[T any, V comparable](rows []T, value func(*T) V) bool {
	first := value(&rows[0])
	for i := range rows {
		if value(&rows[i]) != first {
			return false
		}
	}
	return true
}

// texts is a column of texts, as bytes that lie behind each other.
func texts[T any](rows []T, value func(*T) string) pgtype.Array[[]byte] {
	size := 0
	for i := range rows {
		size += len(value(&rows[i]))
	}
	all, values := make([]byte, 0, size), make([][]byte, len(rows))
	for i := range rows {
		at := len(all)
		all = append(all, value(&rows[i])...)
		values[i] = all[at:]
	}
	return array(values)
}

// textOnce is texts, or its one value if all are equal.
func textOnce[T any](rows []T, value func(*T) string) pgtype.Array[[]byte] {
	if same(rows, value) {
		rows = rows[:1]
	}
	return texts(rows, value)
}

// orNulls is a column that may be null, and has no values if it is in all rows.
func orNulls[T any](rows []T, value func(*T) []byte) pgtype.Array[[]byte] {
	values, is := make([][]byte, len(rows)), false
	for i := range rows {
		values[i] = value(&rows[i])
		is = is || values[i] != nil
	}
	if !is {
		values = nil
	}
	return array(values)
}

// never is a time that there is not, in a column whose one value is repeated
// where there is none. No duration is as small.
const never = -1 << 60

func orNever(d pgtype.Int8) int64 {
	if !d.Valid {
		return never
	}
	return d.Int64
}
