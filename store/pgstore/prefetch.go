package pgstore

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgtype"

	"github.com/semel-go/semel/store"
	"github.com/semel-go/semel/store/pgstore/internal/pgwire"
	"github.com/semel-go/semel/store/pgstore/internal/table"
)

// expectation is what a prefetch expects of its keys. A wrong expectation changes no
// result, but the prefetch begins again.
type expectation int

const (
	newOrCompleted expectation = iota // a record that exists is completed and does not change
	anything                          // also keys that are locked elsewhere
)

// errNotNew: a key of the batch is locked by another transaction.
var errNotNew = errors.New("a key of the batch is locked by another transaction")

// startPrefetch begins a transaction, locks the keys, and inserts records for new
// keys. It returns nil if it cannot.
func (b *batchTry) startPrefetch(ctx context.Context) *ownTx {
	if stat := b.atomic.store.appPool.Stat(); stat.MaxConns()-stat.AcquiredConns() < spareConnections {
		return nil
	}
	expected := newOrCompleted
	if b.atomic.foundLockedKey.Load() {
		expected = anything
	}
	for {
		t := b.atomic.newOwnTx()
		if t.connect(ctx) != nil {
			t.end()
			return nil
		}
		b.setTx(&t.storeTx)
		b.prefetch.written = 0
		err := b.lockAndInsert(ctx, b.prefetch.rows, expected)
		if err == nil {
			return t
		}
		t.end()
		if expected == anything || !table.LostRace(err) && !errors.Is(err, errNotNew) {
			return nil
		}
		expected = anything
	}
}

// prefetchDeferred looks up the keys that were also in an earlier batch, and again the
// keys that were locked elsewhere. All earlier batches have ended.
func (b *batchTry) prefetchDeferred(ctx context.Context) error {
	prefetch := b.prefetch
	rest := prefetch.deferred
	if prefetch.lockedElsewhere > 0 {
		for _, r := range prefetch.rows {
			if state := r.prefetched.state; state != nil && !state.locked {
				rest = append(rest, r)
			}
		}
		slices.SortFunc(rest, compareCalls)
	}
	if len(rest) == 0 {
		return nil
	}
	return b.lockAndInsert(ctx, rest, anything)
}

// lockAndInsert locks keys, and inserts completed records for the keys that are free
// and new. For the other keys it stores the records that exist.
func (b *batchTry) lockAndInsert(ctx context.Context, rows []*batchCall, expected expectation) error {
	for _, r := range rows {
		result := &r.prefetched
		result.completed, result.state, result.inserted = nil, nil, nil // of an earlier try
	}
	prefetch, wrote := b.prefetch, 0
	prefetch.lockedElsewhere = 0
	rest, more, err := b.findCompleted(ctx, rows)
	if err != nil {
		return err
	}
	if more {
		expected = anything
	}
	switch {
	case len(rest) == 0:
	case expected == anything:
		wrote, err = b.insertAny(ctx, rest)
	default:
		wrote, err = len(rest), b.insertNew(ctx, rest)
	}
	if err != nil {
		return err
	}
	prefetch.written += wrote
	b.atomic.foundLockedKey.Store(prefetch.lockedElsewhere > 0)
	return nil
}

// findCompleted looks for keys whose records are completed and will not change. It
// returns the other keys; more reports whether one of them has a record.
func (b *batchTry) findCompleted(ctx context.Context, rows []*batchCall) (rest []*batchCall, more bool, err error) {
	t, p, settlement := b.tx, &rows[0].proposal, &b.prefetch.settlement
	var storeID pgtype.UUID
	now, n := int64(0), 0
	t.pipeline.Push(useGenericPlans, nil, t.readHasStandby)
	t.pipeline.Push(t.session.sql.FindCompleted, []any{
		pgwire.Pointers(rows, func(r **batchCall) pgtype.UUID { return (*r).id }), t.idleTimeout,
		int16(settlement.State), int16(p.Policy), int64(settlement.Attempt),
		[]byte(p.Key.Operation), []byte(p.Key.Tenant), []byte(p.Fingerprint.Alg), []byte(p.Fingerprint.KeyID), []byte(p.Error),
	}, func(res pgx.BatchResults) error {
		return eachRow(res, func(scan func(...any) error) error {
			var id *pgtype.UUID
			var packed []byte
			if err := scan(&now, &storeID, &id, &packed); err != nil || id == nil {
				return err
			}
			call, err := callOf(rows, id)
			if err != nil {
				return err
			}
			if packed == nil {
				more = true
				return nil
			}
			call.prefetched.completed, err = table.UnpackCompleted(now, packed)
			n++
			return err
		})
	})
	t.pipeline.Push(restorePlans, nil, nil)
	if err := t.store.checkStore(t.pipeline.Flush(ctx), storeID); err != nil || n == 0 {
		return rows, more, err
	}
	rest = make([]*batchCall, 0, len(rows)-n)
	for _, r := range rows {
		if r.prefetched.completed == nil {
			rest = append(rest, r)
		}
	}
	return rest, more, nil
}

// insertNew locks keys, and inserts completed records for them. It fails if a key is
// locked elsewhere or has a record.
func (b *batchTry) insertNew(ctx context.Context, rows []*batchCall) error {
	var storeID pgtype.UUID
	inserted := &insertion{}
	b.tx.pipeline.Push(b.tx.session.sql.LockAndInsertNew, b.insertArgs(rows), func(res pgx.BatchResults) error {
		return eachRow(res, func(scan func(...any) error) error {
			var locked bool
			if err := scan(&inserted.now, &b.tx.hasStandby, &inserted.sweptFence, &storeID, &locked); err != nil || !locked {
				return cmp.Or(err, errNotNew)
			}
			return nil
		})
	})
	if err := b.tx.store.checkStore(b.tx.pipeline.Flush(ctx), storeID); err != nil {
		return err
	}
	markInserted(rows, inserted)
	return nil
}

// insertAny locks the keys that are free, and inserts completed records for those that
// have none. It stores the state of the other keys.
func (b *batchTry) insertAny(ctx context.Context, rows []*batchCall) (n int, err error) {
	t, prefetch := b.tx, b.prefetch
	var storeID pgtype.UUID
	inserted := &insertion{}
	t.pipeline.Push(useGenericPlans, nil, t.readHasStandby)
	t.pipeline.Push(t.session.sql.LockAndInsert, b.insertArgs(rows), func(res pgx.BatchResults) error {
		return eachRow(res, func(scan func(...any) error) error {
			var id *pgtype.UUID
			var locked pgtype.Bool
			var packed []byte
			var count int64
			if err := scan(&inserted.now, &inserted.sweptFence, &storeID, &count, &id, &locked, &packed); err != nil {
				return err
			}
			if n = int(count); id == nil {
				return nil
			}
			call, err := callOf(rows, id)
			if err != nil {
				return err
			}
			state := &keyState{locked: locked.Bool, now: inserted.now, sweptFence: inserted.sweptFence}
			if packed != nil {
				if err := state.row.Unpack(packed); err != nil {
					return err
				}
			}
			if call.prefetched.state = state; !state.locked {
				prefetch.lockedElsewhere++
			}
			return nil
		})
	})
	t.pipeline.Push(restorePlans, nil, nil)
	if err := t.store.checkStore(t.pipeline.Flush(ctx), storeID); err != nil {
		return 0, err
	}
	markInserted(rows, inserted)
	return n, nil
}

// insertArgs are the parameters of the statements LockAndInsert and LockAndInsertNew.
func (b *batchTry) insertArgs(rows []*batchCall) []any {
	t, prefetch, p := b.tx, b.prefetch, &rows[0].proposal
	highs, lows := make([]int32, len(rows)), make([]int32, len(rows))
	for i, r := range rows {
		highs[i], lows[i] = t.store.lockOf(r.id)
	}
	return []any{
		pgwire.Pointers(rows, func(r **batchCall) pgtype.UUID { return (*r).id }),
		pgwire.Array(highs), pgwire.Array(lows),
		pgwire.Pointers(rows, func(r **batchCall) pgtype.UUID { return table.Owner((*r).proposal.Owner) }),
		pgwire.Texts(rows, func(r **batchCall) string { return (*r).proposal.Key.Value }), pgwire.Texts(rows, func(r **batchCall) string { return (*r).proposal.Fingerprint.Sum }),
		int16(prefetch.settlement.State), int16(p.Policy), int64(prefetch.settlement.Attempt), &prefetch.columns.Expires,
		[]byte(p.Key.Operation), []byte(p.Key.Tenant), []byte(p.Holder), []byte(p.Fingerprint.Alg), []byte(p.Fingerprint.KeyID), []byte(p.Error),
		t.idleTimeout,
	}
}

// markInserted marks calls without another state, because their records were inserted.
func markInserted(rows []*batchCall, inserted *insertion) {
	record := rows[0].proposal.Insert(store.Time(inserted.now), uint64(inserted.sweptFence)) //nolint:gosec // it is a time
	inserted.fence = record.Fence
	for _, r := range rows {
		if r.prefetched.state == nil {
			r.prefetched.inserted = inserted
		}
	}
}

// callOf finds the call with an id.
func callOf(rows []*batchCall, id *pgtype.UUID) (*batchCall, error) {
	i, ok := slices.BinarySearchFunc(rows, *id, func(c *batchCall, id pgtype.UUID) int { return pgwire.CompareIDs(c.id, id) })
	if !ok {
		return nil, fmt.Errorf("%w: the answer has an id that was not in the statement", store.ErrCorrupt)
	}
	return rows[i], nil
}

// eachRow calls row for each row of an answer.
func eachRow(res pgx.BatchResults, row func(scan func(...any) error) error) error {
	rows, err := res.Query()
	if err != nil {
		return err
	}
	defer rows.Close()
	for rows.Next() {
		if err := row(rows.Scan); err != nil {
			return err
		}
	}
	return rows.Err()
}
