package pgstore

import (
	"cmp"
	"context"
	"encoding/binary"
	"errors"
	"fmt"
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
	as   store.Settlement // how each ends
	end  end
	rows []takenRow // of the keys, in the order of their ids
	left []takenRow // of those that are in a batch before this one, in that order
	busy int        // how many of rows were another's
	n    int        // how many it has written
	done int        // and how many of these have ended so
}

// takenRow is the first call with a key.
type takenRow struct {
	at uint64 // how its id begins, for that tells most of them apart
	v  *visitor
}

func beginning(id pgtype.UUID) uint64 { return binary.BigEndian.Uint64(id.Bytes[:]) }

func (r takenRow) compare(at uint64, id *pgtype.UUID) int {
	if r.at != at {
		return cmp.Compare(r.at, at)
	}
	return compareIDs(r.v.id, *id)
}

// ahead is what the look has found, or written, for a call.
type ahead struct {
	first *visitor // with the same key; nil: this one, and it has the rest
	found *looked  // what was there; nil: nothing, or it has changed since
	wrote *moment  // when it was recorded as done; nil: it was not
	done  bool     // it has ended so
	busy  bool     // the handler is to run for the key
}

// moment is when a statement wrote records, and what it began them with.
type moment struct {
	now, swept int64
	fence      uint64
}

// ofKey is what is known of the call's key.
func (v *visitor) ofKey() *ahead {
	if v.ahead.first != nil {
		v = v.ahead.first
	}
	return &v.ahead
}

// claim is a claim of what the look has not written for this call; false: it
// has to be looked for.
func (w *taken) claim(v *visitor, p *store.Proposal) (f store.Found, is bool, err error) {
	switch a := v.ofKey(); {
	case a.done:
		now := store.Time(a.wrote.now)
		r := w.as.Apply(v.ahead.first.p.Insert(now, uint64(a.wrote.swept)), now) //nolint:gosec // it is a time
		return found(&r, p, now), true, nil
	case a.wrote != nil: // it has to end first
		return f, true, errTaken
	case a.found != nil:
		return a.found.found(p)
	}
	return f, false, nil
}

// leaveOut leaves out what others have.
func (w *taken) leaveOut(others []takenRow) {
	has := func(r takenRow) bool {
		for len(others) > 0 && others[0].compare(r.at, &r.v.id) < 0 {
			others = others[1:]
		}
		return len(others) > 0 && others[0].compare(r.at, &r.v.id) == 0
	}
	from := slices.IndexFunc(w.rows, has)
	if from < 0 {
		return
	}
	rows := slices.Clone(w.rows[:from])
	for _, r := range w.rows[from:] {
		if has(r) {
			w.left = append(w.left, r)
		} else {
			rows = append(rows, r)
		}
	}
	w.rows = rows
	slices.SortFunc(w.left, func(a, b takenRow) int { return a.compare(b.at, &b.v.id) })
}

// settle is how the handler of what was written ahead has ended.
func (w *taken) settle(v *visitor, l *store.Lease, s *store.Settlement) {
	o := &s.Outcome
	if s.State == w.as.State && s.Attempt == w.as.Attempt && s.Error == "" && s.Keep == w.as.Keep && l.Fence == v.ahead.wrote.fence && l.Owner == v.p.Owner &&
		o.Code == 0 && !o.Gone && o.Codec == "" && len(o.Header) == 0 && len(o.Body) == 0 {
		v.ahead.done = true
		w.done++
	}
}

// room is memory for a batch, to be used again: to make it anew each time costs
// as much as all else that a batch takes here.
type room struct {
	visitors []visitor
	steps    []semel.Steps
	rows     []takenRow
}

func (r *room) clear() {
	clear(r.visitors)
	clear(r.steps)
	clear(r.rows)
}

// prepare begins the steps of calls that can be looked for ahead; nil: they
// cannot, because they have more in them than their keys and fingerprints.
func (a *Atomic) prepare(calls []semel.Call, in *room) *inbox {
	y := a.newInbox(nil, false)
	y.visitors, y.steps = in.visitors, in.steps
	y.visit(all(len(calls)), calls)
	w := &taken{as: store.Settlement{State: store.Completed, Attempt: 1, Keep: a.g.Retention()}, rows: in.rows[:0]}
	w.end, _ = newEnd(w.as.State, &w.as.Outcome, 0, w.as.Keep) // it fails for outcomes only
	can := true
	for i := range y.visitors {
		v := &y.visitors[i]
		if v.steps == nil {
			continue
		}
		is := false
		v.p, is = v.steps.Proposal()
		w.rows = append(w.rows, takenRow{beginning(v.id), v})
		can = can && is && alikeBut(&v.p, &w.rows[0].v.p)
	}
	in.visitors, in.steps, in.rows = y.visitors, y.steps, w.rows
	if !can || len(w.rows) == 0 {
		return nil
	}
	slices.SortFunc(w.rows, func(a, b takenRow) int { return cmp.Or(a.compare(b.at, &b.v.id), cmp.Compare(a.v.i, b.v.i)) })
	rows := w.rows[:0]
	for _, r := range w.rows { // of those with a key the first is the one that runs
		if n := len(rows); n > 0 && r.compare(rows[n-1].at, &rows[n-1].v.id) == 0 {
			r.v.ahead.first = rows[n-1].v
		} else {
			rows = append(rows, r)
		}
	}
	w.rows = rows
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
		if t.connectDirectly(ctx, y.a.s.txSQL.ofLooks()) != nil {
			t.end()
			return nil
		}
		y.in(&t.storeTx)
		y.taken.n = 0
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

// lookForRest looks for the keys that were left out, and once more for those
// that were another's. All batches before have ended.
func (y *inbox) lookForRest(ctx context.Context) error {
	w := y.taken
	rest := w.left
	if w.busy > 0 {
		for _, r := range w.rows {
			if l := r.v.ahead.found; l != nil && !l.locked {
				rest = append(rest, r)
			}
		}
		slices.SortFunc(rest, func(a, b takenRow) int { return a.compare(b.at, &b.v.id) })
	}
	if len(rest) == 0 {
		return nil
	}
	return y.take(ctx, rest, true)
}

// errNotNew: not all keys were free.
var errNotNew = errors.New("a key of the batch is another's")

// take locks keys, and records those as done that are free and new. Of the
// others it keeps what is there.
func (y *inbox) take(ctx context.Context, rows []takenRow, look bool) error {
	t, w, p, sql := y.t, y.taken, &rows[0].v.p, y.t.db.sql.takesNew
	if look {
		sql = t.db.sql.takes
		t.line.push(plansForAll, nil, nil)
	}
	for _, r := range rows {
		r.v.ahead.found, r.v.ahead.wrote = nil, nil
	}
	var of pgtype.UUID
	at := &moment{}
	wrote := int64(len(rows))
	w.busy = 0
	t.line.push(sql, []any{
		uuids[takenRow]{rows, func(r *takenRow) pgtype.UUID { return r.v.id }},
		int4s[takenRow]{rows, func(r *takenRow) int32 { high, _ := t.s.lockOf(r.v.id); return high }},
		int4s[takenRow]{rows, func(r *takenRow) int32 { _, low := t.s.lockOf(r.v.id); return low }},
		uuids[takenRow]{rows, func(r *takenRow) pgtype.UUID { return ownerOf(r.v.p.Owner) }},
		byteas[takenRow]{rows, func(r *takenRow) string { return r.v.p.Key.Value }}, byteas[takenRow]{rows, func(r *takenRow) string { return r.v.p.Fingerprint.Sum }},
		int16(w.as.State), int16(p.Policy), int64(w.as.Attempt), &w.end.expires,
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
				var locked bool
				if err := found.Scan(&at.now, &at.swept, &of, &locked); err != nil || !locked {
					return cmp.Or(err, errNotNew)
				}
				continue
			}
			var id *pgtype.UUID
			var locked pgtype.Bool
			var packed []byte
			if err := found.Scan(&at.now, &at.swept, &of, &wrote, &id, &locked, &packed); err != nil {
				return err
			}
			if id == nil {
				continue
			}
			i, is := slices.BinarySearchFunc(rows, beginning(*id), func(r takenRow, at uint64) int { return r.compare(at, id) })
			if !is {
				return fmt.Errorf("%w: an answer to what was not asked", store.ErrCorrupt)
			}
			l := &looked{locked: locked.Bool, now: at.now, swept: at.swept}
			if isKept(packed) {
				l.kept, err = &rows[i].v.p, l.w.unpackKept(packed)
			} else if packed != nil {
				err = l.w.unpack(packed)
			}
			if err != nil {
				return err
			}
			if rows[i].v.ahead.found = l; !l.locked {
				w.busy++
			}
		}
		return found.Err()
	})
	if look {
		t.line.push(plansAsBefore, nil, nil)
	}
	if err := t.s.isOurs(t.line.flush(ctx), of); err != nil {
		return err
	}
	made := p.Insert(store.Time(at.now), uint64(at.swept)) //nolint:gosec // it is a time
	at.fence = made.Fence
	for _, r := range rows {
		if r.v.ahead.found == nil {
			r.v.ahead.wrote = at
		}
	}
	switch w.n += int(wrote); {
	case int(wrote) < len(rows):
		y.a.fresh.Store(0)
	case look:
		y.a.fresh.Add(1)
	}
	return nil
}
