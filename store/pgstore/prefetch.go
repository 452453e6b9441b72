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

// expectation is what a look ahead expects of keys. One that guessed wrong changes
// nothing, and costs what it had done.
type expectation int

const (
	allNew    expectation = iota // there is nothing, so none is looked for: the statement fails if something is
	newOrKept                    // what is there is kept, and stays as it is
	anything
)

// newOnly is after how many batches with new keys only the next are guessed to be
// new. Behind one of which a key was another's nothing is guessed.
const newOnly = 3

// errNotNew: not all keys were free.
var errNotNew = errors.New("a key of the batch is another's")

// lookAhead begins the transaction, locks the keys, and writes what is new; nil:
// it could not.
func (y *batchTry) lookAhead(ctx context.Context) *ownTx {
	if st := y.a.s.app.Stat(); st.MaxConns()-st.AcquiredConns() < spare {
		return nil
	}
	g := newOrKept
	switch n := y.a.fresh.Load(); {
	case n >= newOnly:
		g = allNew
	case n < 0:
		g = anything
	}
	for {
		t := y.a.newOwnTx()
		if t.connect(ctx) != nil {
			t.end()
			return nil
		}
		y.in(&t.storeTx)
		y.prefetched.n = 0
		err := y.take(ctx, y.prefetched.rows, g)
		if err == nil {
			return t
		}
		t.end()
		if g == anything || !lostRace(err) && !errors.Is(err, errNotNew) {
			return nil
		}
		y.a.fresh.Store(0)
		g = anything
	}
}

// lookForRest looks for the keys that were left out, and once more for those
// that were another's. All batches before have ended.
func (y *batchTry) lookForRest(ctx context.Context) error {
	w := y.prefetched
	rest := w.left
	if w.busy > 0 {
		for _, r := range w.rows {
			if l := r.v.ahead.found; l != nil && !l.locked {
				rest = append(rest, r)
			}
		}
		slices.SortFunc(rest, func(a, b prefetchedRow) int { return a.compare(b.at, &b.v.id) })
	}
	if len(rest) == 0 {
		return nil
	}
	return y.take(ctx, rest, anything)
}

// take locks keys, and records those as done that are free and new. Of the
// others it keeps what is there.
func (y *batchTry) take(ctx context.Context, rows []prefetchedRow, g expectation) (err error) {
	for _, r := range rows {
		a := &r.v.ahead
		a.kept, a.found, a.wrote = nil, nil, nil // of a try before
	}
	w, rest, wrote := y.prefetched, rows, 0
	w.busy = 0
	if g != allNew {
		var more bool
		if rest, more, err = y.keeps(ctx, rows); err != nil {
			return err
		}
		if more {
			g = anything
		}
	}
	switch {
	case len(rest) == 0:
	case g == anything:
		wrote, err = y.takeAny(ctx, rest)
	default:
		wrote, err = len(rest), y.takeNew(ctx, rest)
	}
	if err != nil {
		return err
	}
	switch w.n += wrote; {
	case w.busy > 0:
		y.a.fresh.Store(-1)
	case wrote < len(rows):
		y.a.fresh.Store(0)
	case g != allNew:
		y.a.fresh.Add(1)
	}
	return nil
}

// keeps looks for keys that are kept. The rest is to be taken, and more reports
// whether something else is there of it.
func (y *batchTry) keeps(ctx context.Context, rows []prefetchedRow) (rest []prefetchedRow, more bool, err error) {
	t, p, as := y.t, &rows[0].v.p, &y.prefetched.as
	var of pgtype.UUID
	now, n := int64(0), 0
	t.line.Push(plansForAll, nil, nil)
	t.line.Push(t.db.sql.FindCompleted, []any{
		pgwire.Pointers(rows, func(r *prefetchedRow) pgtype.UUID { return r.v.id }), t.idle,
		int16(as.State), int16(p.Policy), int64(as.Attempt),
		[]byte(p.Key.Operation), []byte(p.Key.Tenant), []byte(p.Fingerprint.Alg), []byte(p.Fingerprint.KeyID), []byte(p.Error),
	}, func(res pgx.BatchResults) error {
		return each(res, func(scan func(...any) error) error {
			var id *pgtype.UUID
			var packed []byte
			if err := scan(&now, &of, &id, &packed); err != nil || id == nil {
				return err
			}
			v, err := asked(rows, id)
			if err != nil {
				return err
			}
			if packed == nil {
				more = true
				return nil
			}
			v.ahead.kept, err = table.UnpackCompleted(now, packed)
			n++
			return err
		})
	})
	t.line.Push(plansAsBefore, nil, nil)
	if err := t.s.isOurs(t.line.Flush(ctx), of); err != nil || n == 0 {
		return rows, more, err
	}
	rest = make([]prefetchedRow, 0, len(rows)-n)
	for _, r := range rows {
		if r.v.ahead.kept == nil {
			rest = append(rest, r)
		}
	}
	return rest, more, nil
}

// takeNew locks keys, and records them as done. It fails if one is not free, or
// there is something.
func (y *batchTry) takeNew(ctx context.Context, rows []prefetchedRow) error {
	var of pgtype.UUID
	at := &moment{}
	y.t.line.Push(y.t.db.sql.LockAndInsertNew, y.rowsOf(rows), func(res pgx.BatchResults) error {
		return each(res, func(scan func(...any) error) error {
			var locked bool
			if err := scan(&at.now, &at.swept, &of, &locked); err != nil || !locked {
				return cmp.Or(err, errNotNew)
			}
			return nil
		})
	})
	if err := y.t.s.isOurs(y.t.line.Flush(ctx), of); err != nil {
		return err
	}
	recorded(rows, at)
	return nil
}

// takeAny locks keys that are free, and records those as done of which there is
// nothing. Of the others it says what there is.
func (y *batchTry) takeAny(ctx context.Context, rows []prefetchedRow) (n int, err error) {
	t, w := y.t, y.prefetched
	var of pgtype.UUID
	at := &moment{}
	t.line.Push(plansForAll, nil, nil)
	t.line.Push(t.db.sql.LockAndInsert, y.rowsOf(rows), func(res pgx.BatchResults) error {
		return each(res, func(scan func(...any) error) error {
			var id *pgtype.UUID
			var locked pgtype.Bool
			var packed []byte
			var count int64
			if err := scan(&at.now, &at.swept, &of, &count, &id, &locked, &packed); err != nil {
				return err
			}
			if n = int(count); id == nil {
				return nil
			}
			v, err := asked(rows, id)
			if err != nil {
				return err
			}
			l := &looked{locked: locked.Bool, now: at.now, swept: at.swept}
			if packed != nil {
				if err := l.w.Unpack(packed); err != nil {
					return err
				}
			}
			if v.ahead.found = l; !l.locked {
				w.busy++
			}
			return nil
		})
	})
	t.line.Push(plansAsBefore, nil, nil)
	if err := t.s.isOurs(t.line.Flush(ctx), of); err != nil {
		return 0, err
	}
	recorded(rows, at)
	return n, nil
}

// rowsOf are the parameters of the statements takes and takesNew.
func (y *batchTry) rowsOf(rows []prefetchedRow) []any {
	t, w, p := y.t, y.prefetched, &rows[0].v.p
	highs, lows := make([]int32, len(rows)), make([]int32, len(rows))
	for i, r := range rows {
		highs[i], lows[i] = t.s.lockOf(r.v.id)
	}
	return []any{
		pgwire.Pointers(rows, func(r *prefetchedRow) pgtype.UUID { return r.v.id }),
		pgwire.Array(highs), pgwire.Array(lows),
		pgwire.Pointers(rows, func(r *prefetchedRow) pgtype.UUID { return table.Owner(r.v.p.Owner) }),
		pgwire.Texts(rows, func(r *prefetchedRow) string { return r.v.p.Key.Value }), pgwire.Texts(rows, func(r *prefetchedRow) string { return r.v.p.Fingerprint.Sum }),
		int16(w.as.State), int16(p.Policy), int64(w.as.Attempt), &w.end.Expires,
		[]byte(p.Key.Operation), []byte(p.Key.Tenant), []byte(p.Holder), []byte(p.Fingerprint.Alg), []byte(p.Fingerprint.KeyID), []byte(p.Error),
		t.idle,
	}
}

// recorded notes when rows were recorded, of which nothing else was found.
func recorded(rows []prefetchedRow, at *moment) {
	made := rows[0].v.p.Insert(store.Time(at.now), uint64(at.swept)) //nolint:gosec // it is a time
	at.fence = made.Fence
	for _, r := range rows {
		if r.v.ahead.found == nil {
			r.v.ahead.wrote = at
		}
	}
}

// asked is whose id it is.
func asked(rows []prefetchedRow, id *pgtype.UUID) (*batchCall, error) {
	i, is := slices.BinarySearchFunc(rows, beginning(*id), func(r prefetchedRow, at uint64) int { return r.compare(at, id) })
	if !is {
		return nil, fmt.Errorf("%w: an answer to what was not asked", store.ErrCorrupt)
	}
	return rows[i].v, nil
}

// each row of an answer.
func each(res pgx.BatchResults, row func(scan func(...any) error) error) error {
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
