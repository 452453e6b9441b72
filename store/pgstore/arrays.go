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
// ids: two batches meet the same rows in the same order.
func claimArrays(byID map[pgtype.UUID]*claimItem) []any {
	rows := make([]claimRow, 0, len(byID))
	for id, it := range byID {
		e, _ := newEnd(it.Req.State, &it.Req.Outcome, it.Req.Lease, it.Req.Keep) // fails for outcomes only
		rows = append(rows, claimRow{id, e, it})
	}
	slices.SortFunc(rows, func(a, b claimRow) int { return compareIDs(a.id, b.id) })
	text := func(get func(claimRow) string) [][]byte {
		return column(rows, func(r claimRow) []byte { return []byte(get(r)) })
	}
	return []any{
		column(rows, func(r claimRow) pgtype.UUID { return r.id }),
		column(rows, func(r claimRow) pgtype.UUID { return ownerOf(r.it.Req.Owner) }),
		column(rows, func(r claimRow) int16 { return int16(r.it.Req.State) }),
		column(rows, func(r claimRow) int16 { return int16(r.it.Req.Policy) }),
		column(rows, func(r claimRow) int64 { return int64(r.it.Req.Attempt) }),
		column(rows, func(r claimRow) int64 { return r.end.until.Int64 }),
		text(func(r claimRow) string { return r.it.Req.Key.Operation }),
		text(func(r claimRow) string { return r.it.Req.Key.Tenant }),
		text(func(r claimRow) string { return r.it.Req.Key.Value }),
		text(func(r claimRow) string { return r.it.Req.Holder }),
		text(func(r claimRow) string { return r.it.Req.Fingerprint.Alg }),
		text(func(r claimRow) string { return r.it.Req.Fingerprint.KeyID }),
		text(func(r claimRow) string { return r.it.Req.Fingerprint.Sum }),
		text(func(r claimRow) string { return r.it.Req.Error }),
	}
}

// settleArrays are the parameters of a batch of settlements, in the order of
// their ids.
func settleArrays(batch []*settleItem) []any {
	rows := column(batch, func(it *settleItem) *settleRequest { return it.Req })
	slices.SortFunc(rows, func(a, b *settleRequest) int { return compareIDs(a.id, b.id) })
	return []any{
		column(rows, func(r *settleRequest) pgtype.UUID { return r.id }),
		column(rows, func(r *settleRequest) pgtype.UUID { return ownerOf(r.lease.Owner) }),
		column(rows, func(r *settleRequest) int64 { return fenceOf(r.lease.Fence) }),
		column(rows, func(r *settleRequest) int16 { return int16(r.t.State) }),
		column(rows, func(r *settleRequest) int64 { return int64(r.t.Attempt) }),
		column(rows, func(r *settleRequest) pgtype.Int8 { return r.end.until }),
		column(rows, func(r *settleRequest) pgtype.Int8 { return r.end.expires }),
		column(rows, func(r *settleRequest) []byte { return []byte(r.t.Error) }),
		column(rows, func(r *settleRequest) int64 { return r.end.code }),
		column(rows, func(r *settleRequest) bool { return r.end.gone }),
		column(rows, func(r *settleRequest) []byte { return r.end.codec }),
		column(rows, func(r *settleRequest) []byte { return r.end.header }),
		column(rows, func(r *settleRequest) []byte { return r.end.body }),
	}
}
