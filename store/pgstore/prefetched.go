package pgstore

import (
	"cmp"
	"encoding/binary"
	"errors"
	"slices"

	"github.com/jackc/pgx/v5/pgtype"

	"github.com/semel-go/semel"
	"github.com/semel-go/semel/store"
	"github.com/semel-go/semel/store/pgstore/internal/pgwire"
	"github.com/semel-go/semel/store/pgstore/internal/table"
)

// errPrefetchDiffers: what was written ahead is not what is to be kept.
var errPrefetchDiffers = errors.New("the batch ended in another way than it was recorded ahead")

// prefetched is what a prefetch writes: each new call as done, without an outcome.
type prefetched struct {
	as   store.Settlement // how each ends
	end  table.StateColumns
	rows []prefetchedRow // of the keys, in the order of their ids
	left []prefetchedRow // of those that are in a batch before this one, in that order
	busy int             // how many of rows were another's
	n    int             // how many it has written
	done int             // and how many of these have ended so
}

// prefetchedRow is the first call with a key.
type prefetchedRow struct {
	at uint64 // how its id begins, for that tells most of them apart
	v  *batchCall
}

func beginning(id pgtype.UUID) uint64 { return binary.BigEndian.Uint64(id.Bytes[:]) }

func (r prefetchedRow) compare(at uint64, id *pgtype.UUID) int {
	if r.at != at {
		return cmp.Compare(r.at, at)
	}
	return pgwire.CompareIDs(r.v.id, *id)
}

// ahead is what the look has found, or written, for a call.
type ahead struct {
	first *batchCall          // with the same key; nil: this one, and it has the rest
	kept  *table.CompletedRow // what was there, and stays as it is; nil: there was not, or it has more in it
	found *looked             // what was there else; nil: nothing, or it has changed since
	wrote *moment             // when it was recorded as done; nil: it was not
	done  bool                // it has ended so
	busy  bool                // the handler is to run for the key
}

// moment is when a statement wrote records, and what it began them with.
type moment struct {
	now, swept int64
	fence      uint64
}

// ofKey is what is known of the call's key.
func (v *batchCall) ofKey() *ahead {
	if v.ahead.first != nil {
		v = v.ahead.first
	}
	return &v.ahead
}

// claim is a claim of what the look has not written for this call; false: it
// has to be looked for.
func (w *prefetched) claim(v *batchCall, p *store.Proposal) (f store.Found, is bool, err error) {
	switch a := v.ofKey(); {
	case a.done:
		now := store.Time(a.wrote.now)
		r := w.as.Apply(v.ahead.first.p.Insert(now, uint64(a.wrote.swept)), now) //nolint:gosec // it is a time
		return table.Found(&r, p, now), true, nil
	case a.wrote != nil: // it has to end first
		return f, true, errPrefetchDiffers
	case a.kept != nil:
		return a.kept.Found(p), true, nil
	case a.found != nil:
		return a.found.found(p)
	}
	return f, false, nil
}

// leaveOut leaves out what others have.
func (w *prefetched) leaveOut(others []prefetchedRow) {
	has := func(r prefetchedRow) bool {
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
	slices.SortFunc(w.left, func(a, b prefetchedRow) int { return a.compare(b.at, &b.v.id) })
}

// settle is how the handler of what was written ahead has ended.
func (w *prefetched) settle(v *batchCall, l *store.Lease, s *store.Settlement) {
	o := &s.Outcome
	if s.State == w.as.State && s.Attempt == w.as.Attempt && s.Error == "" && s.Keep == w.as.Keep && l.Fence == v.ahead.wrote.fence && l.Owner == v.p.Owner &&
		o.Code == 0 && !o.Gone && o.Codec == "" && len(o.Header) == 0 && len(o.Body) == 0 {
		v.ahead.done = true
		w.done++
	}
}

// batchBuffer is memory for a batch. A Prefetcher uses it again for later batches,
// because to allocate it for each costs as much as the rest of a prefetch.
type batchBuffer struct {
	batchCalls []batchCall
	rows       []prefetchedRow
}

func (r *batchBuffer) clear() {
	clear(r.batchCalls)
	clear(r.rows)
}

// prepare begins the steps of calls that can be looked for ahead; nil: they
// cannot, because they have more in them than their keys and fingerprints.
func (a *Atomic) prepare(calls []semel.Call, in *batchBuffer) *batchTry {
	y := a.newBatchTry(nil, false)
	y.batchCalls = in.batchCalls
	y.visit(all(len(calls)), calls)
	w := &prefetched{as: store.Settlement{State: store.Completed, Attempt: 1, Keep: a.g.Retention()}, rows: in.rows[:0]}
	w.end, _ = table.NewStateColumns(w.as.State, &w.as.Outcome, 0, w.as.Keep) // it fails for outcomes only
	can := true
	for i := range y.batchCalls {
		v := &y.batchCalls[i]
		if v.steps == nil {
			continue
		}
		is := false
		v.p, is = v.steps.Proposal()
		w.rows = append(w.rows, prefetchedRow{beginning(v.id), v})
		can = can && is && alikeBut(&v.p, &w.rows[0].v.p)
	}
	in.batchCalls, in.rows = y.batchCalls, w.rows
	if !can || len(w.rows) == 0 {
		return nil
	}
	slices.SortFunc(w.rows, func(a, b prefetchedRow) int { return cmp.Or(a.compare(b.at, &b.v.id), cmp.Compare(a.v.i, b.v.i)) })
	rows := w.rows[:0]
	for _, r := range w.rows { // of those with a key the first is the one that runs
		if n := len(rows); n > 0 && r.compare(rows[n-1].at, &rows[n-1].v.id) == 0 {
			r.v.ahead.first = rows[n-1].v
		} else {
			rows = append(rows, r)
		}
	}
	w.rows = rows
	y.prefetched = w
	return y
}

// alikeBut reports whether claims differ in their keys, owners and fingerprints
// only.
func alikeBut(p, q *store.Proposal) bool {
	return p.State == q.State && p.Policy == q.Policy && p.Attempt == q.Attempt && p.Keep == q.Keep &&
		p.Key.Operation == q.Key.Operation && p.Key.Tenant == q.Key.Tenant && p.Holder == q.Holder &&
		p.Fingerprint.Alg == q.Fingerprint.Alg && p.Fingerprint.KeyID == q.Fingerprint.KeyID && p.Error == q.Error
}
