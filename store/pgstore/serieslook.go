package pgstore

import (
	"cmp"
	"context"
	"errors"
	"slices"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgtype"

	"github.com/semel-go/semel"
	"github.com/semel-go/semel/store"
)

// errTaken: what was written ahead is not what is to be kept.
var errTaken = errors.New("the batch ended in another way than it was recorded ahead")

// taken is what a look ahead writes: each new call as done, without an outcome.
type taken struct {
	room *room
	end  end
	rows []takenRow // of all keys, in the order of their ids
	n    int        // how many of them it wrote
}

type takenRow struct {
	id        pgtype.UUID
	high, low int32
	i         int
	p         *store.Proposal
}

// room is memory for a batch, to be used again: to make it anew each time costs
// as much as all else that a batch takes here.
type room struct {
	visitors []visitor
	rows     []takenRow
	looks    map[pgtype.UUID]*looked
	pending  map[pgtype.UUID]*pending
}

func (r *room) clear() {
	clear(r.visitors)
	clear(r.rows)
	clear(r.looks)
	clear(r.pending)
}

// prepare begins the steps of calls that can be looked for ahead; nil: they
// cannot, because they have more in them than their keys and fingerprints.
func (a *Atomic) prepare(calls []semel.Call, in *room) *inbox {
	y := a.newInbox(nil, false)
	y.visitors = in.visitors
	y.visit(all(len(calls)), calls)
	if in.visitors = y.visitors; in.looks == nil {
		in.looks, in.pending = make(map[pgtype.UUID]*looked, len(calls)), make(map[pgtype.UUID]*pending, len(calls))
	}
	done := store.Settlement{State: store.Completed, Keep: a.g.Retention()}
	w := &taken{room: in, rows: in.rows[:0]}
	w.end, _ = newEnd(done.State, &done.Outcome, 0, done.Keep) // it fails for outcomes only
	for i := range y.visitors {
		v := &y.visitors[i]
		if v.steps == nil {
			continue
		}
		v.p = v.steps.Proposal()
		high, low := a.s.lockOf(v.id)
		w.rows = append(w.rows, takenRow{v.id, high, low, i, &v.p})
	}
	in.rows = w.rows
	slices.SortFunc(w.rows, func(a, b takenRow) int { return cmp.Or(compareIDs(a.id, b.id), cmp.Compare(a.i, b.i)) })
	w.rows = slices.CompactFunc(w.rows, func(a, b takenRow) bool { return a.id == b.id }) // the first is the one that runs
	if len(w.rows) == 0 || slices.ContainsFunc(w.rows, func(r takenRow) bool { return !alikeBut(r.p, w.rows[0].p) }) {
		return nil
	}
	y.taken = w
	return y
}

// alikeBut reports whether claims differ in their keys, owners and fingerprints
// only.
func alikeBut(p, q *store.Proposal) bool {
	return p.State == q.State && p.Policy == q.Policy && p.Attempt == q.Attempt && p.Keep == q.Keep &&
		p.Key.Operation == q.Key.Operation && p.Key.Tenant == q.Key.Tenant && p.Holder == q.Holder &&
		p.Fingerprint.Alg == q.Fingerprint.Alg && p.Fingerprint.KeyID == q.Fingerprint.KeyID && p.Error == q.Error
}

// matches reports whether all that was written ahead, and nothing else, is to
// be kept.
func (w *taken) matches(pending map[pgtype.UUID]*pending) bool {
	if len(pending) != w.n {
		return false
	}
	for _, is := range pending {
		e := &is.end
		if !is.taken || is.p.State != store.Completed || is.p.Attempt != 1 || is.p.Error != "" ||
			e.code != 0 || e.gone || e.codec != nil || e.header != nil || e.body != nil || e.until != w.end.until || e.expires != w.end.expires {
			return false
		}
	}
	return true
}

// newOnly is after how many batches with new keys only the next are written
// without a look at what is there. If something is, the statement fails, and
// the look comes after all: all it has cost then is what it had written.
const newOnly = 3

// lookAhead begins the transaction, locks the keys, and writes what is new; nil:
// it could not.
func (y *inbox) lookAhead(ctx context.Context) *ownTx {
	if st := y.a.s.app.Stat(); st.MaxConns()-st.AcquiredConns() < spare {
		return nil
	}
	look := y.a.fresh.Load() < newOnly
	for {
		t := y.a.newOwnTx()
		if t.connect(ctx) != nil {
			return nil
		}
		y.in(t.storeTx)
		y.taken.n = 0
		clear(y.taken.room.looks)
		t.looks, t.pending = y.taken.room.looks, y.taken.room.pending
		err := y.take(ctx, y.taken.rows, look)
		if err == nil {
			return t
		}
		t.end()
		if look || !lostRace(err) && !errors.Is(err, errNotNew) {
			return nil
		}
		y.a.fresh.Store(0)
		look = true
	}
}

// lookBusy looks once more for the keys that were another's: of the batch before,
// which has ended.
func (y *inbox) lookBusy(ctx context.Context) error {
	var busy []takenRow
	for _, r := range y.taken.rows {
		if l := y.t.looks[r.id]; !l.locked {
			busy = append(busy, r)
		}
	}
	return y.take(ctx, busy, true)
}

// errNotNew: not all keys were free.
var errNotNew = errors.New("a key of the batch is another's")

// take locks keys, and records those as done that are free and new. Of the
// others it keeps what is there.
func (y *inbox) take(ctx context.Context, rows []takenRow, look bool) error {
	if len(rows) == 0 {
		return nil
	}
	t, p, sql := y.t, rows[0].p, y.t.db.sql.takes
	if !look {
		sql = y.t.db.sql.takesNew
	}
	free := &looked{locked: true, taken: true}
	for i := range rows {
		t.looks[rows[i].id] = free
	}
	var of pgtype.UUID
	there := 0
	t.line.push(plansAnew, nil, nil)
	t.line.push(sql, []any{
		pointers(rows, func(r *takenRow) pgtype.UUID { return r.id }),
		pointers(rows, func(r *takenRow) int32 { return r.high }), pointers(rows, func(r *takenRow) int32 { return r.low }),
		pointers(rows, func(r *takenRow) pgtype.UUID { return ownerOf(r.p.Owner) }),
		texts(rows, func(r *takenRow) string { return r.p.Key.Value }), texts(rows, func(r *takenRow) string { return r.p.Fingerprint.Sum }),
		int16(store.Completed), int16(p.Policy), int64(p.Attempt), y.taken.end.expires,
		[]byte(p.Key.Operation), []byte(p.Key.Tenant), []byte(p.Holder), []byte(p.Fingerprint.Alg), []byte(p.Fingerprint.KeyID), []byte(p.Error),
		t.idle,
	}, func(res pgx.BatchResults) error {
		found, err := res.Query()
		if err != nil {
			return err
		}
		defer found.Close()
		for found.Next() {
			if !look {
				var wrote int
				if err := found.Scan(&free.now, &free.swept, &of, &wrote); err != nil || wrote != len(rows) {
					return cmp.Or(err, errNotNew)
				}
				continue
			}
			var id pgtype.UUID
			var locked pgtype.Bool
			var packed []byte
			if err := found.Scan(&free.now, &free.swept, &of, &id, &locked, &packed); err != nil {
				return err
			}
			if !id.Valid {
				continue
			}
			l := &looked{locked: locked.Bool, now: free.now, swept: free.swept}
			if packed != nil {
				if err := l.w.unpack(packed); err != nil {
					return err
				}
			}
			t.looks[id] = l
			there++
		}
		return found.Err()
	})
	t.line.push(plansAsBefore, nil, nil)
	if err := t.s.isOurs(t.line.flush(ctx), of); err != nil {
		return err
	}
	switch y.taken.n += len(rows) - there; {
	case there > 0:
		y.a.fresh.Store(0)
	case look:
		y.a.fresh.Add(1)
	}
	return nil
}
