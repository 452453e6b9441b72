package pgstore

import (
	"context"
	"fmt"
	"iter"
	"time"

	"github.com/jackc/pgx/v5/pgtype"

	"github.com/semel-go/semel/store"
	"github.com/semel-go/semel/store/pgstore/internal/pgwire"
	"github.com/semel-go/semel/store/pgstore/internal/table"
)

// List returns the records that f selects. If f selects only records in doubt, List reads
// no others. Otherwise it reads the whole table in parts, each in a transaction of its own.
// A record may change in between; to return it only once, List keeps 16 bytes for each
// returned record, unless f.Repeats is set. For a record that cannot be read, List returns
// an error that wraps store.ErrCorrupt, and goes on; any other error ends List.
func (s *Store) List(ctx context.Context, f store.Filter) iter.Seq2[store.Found, error] {
	return func(yield func(store.Found, error) bool) {
		given, seen := 0, map[[16]byte]struct{}{}
		nextPage := s.pages(ctx, &f)
		for more := true; more; {
			page, notLast, err := nextPage()
			for _, found := range page {
				if _, again := seen[found.id]; again || found.err == nil && !f.Match(&found.Record, found.Now) {
					continue
				}
				if f.Limit > 0 && given >= f.Limit || !yield(found.Found, found.err) {
					return
				}
				if given++; !f.Repeats {
					seen[found.id] = struct{}{}
				}
			}
			if err != nil {
				yield(store.Found{}, pgwire.Explain("list", err))
				return
			}
			more = notLast
		}
	}
}

const pageSize = 256 // how many records List reads at a time

// listed is a record, or the reason why it cannot be read.
type listed struct {
	store.Found
	id  [16]byte
	err error
}

// pages returns a function that reads the next part of what f may select.
func (s *Store) pages(ctx context.Context, f *store.Filter) func() (page []listed, more bool, err error) {
	if f.InDoubt() {
		after := pgtype.UUID{Valid: true}
		return func() (page []listed, more bool, err error) { return s.doubts(ctx, &after) }
	}
	next, gone := &table.Place{}, 0
	var name string
	return func() (page []listed, more bool, err error) {
		at := *next
		page, next, err = s.page(ctx, f, at)
		if s.isGone(err) {
			if gone++; gone == len(s.parts) { // the whole table, probably
				return nil, false, err
			}
			name, err, next = s.parts[at.Part].name, nil, nil
			if at.Part+1 < len(s.parts) {
				next = &table.Place{Part: at.Part + 1}
			}
		}
		if err == nil && next == nil && gone > 0 {
			err = errGone(name)
		}
		return page, next != nil, err
	}
}

// doubts reads the next records in doubt in the order of their ids.
func (s *Store) doubts(ctx context.Context, after *pgtype.UUID) (page []listed, more bool, err error) {
	if s.closed.Load() {
		return nil, false, ErrClosed
	}
	rows, err := s.ownPool.Query(ctx, s.sql.ListDoubts, *after, int64(pageSize))
	if err != nil {
		return nil, false, err
	}
	defer rows.Close()
	read := 0
	for ; rows.Next(); read++ {
		var now int64
		var row table.Row
		if err := rows.Scan(row.Fields(&now, after)...); err != nil {
			return nil, false, err
		}
		if row.ID.Valid {
			r, err := row.Record()
			page = append(page, listed{store.Found{Record: r, Now: store.Time(now)}, row.ID.Bytes, pgwire.Explain("list", err)})
		}
	}
	return page, read == pageSize, rows.Err()
}

// page reads the next part. It returns the start of the part after it, or nil at the
// end.
func (s *Store) page(ctx context.Context, f *store.Filter, from table.Place) (page []listed, next *table.Place, err error) {
	if s.closed.Load() {
		return nil, nil, ErrClosed
	}
	last := from.PagesAfter(sweepPages)
	rows, err := s.ownPool.Query(ctx, s.parts[from.Part].list, from.TID(), last.TID(), table.OrNull([]byte(f.Operation)), table.OrNull([]byte(f.Tenant)),
		table.StateBits(f.States), table.Micros(max(f.Idle, 0), true).Int64, int64(pageSize), f.Expired, table.Bytes(f.Keys), f.Hashes())
	if err != nil {
		return nil, nil, err
	}
	defer rows.Close()
	var pages int64
	for rows.Next() {
		var now int64
		var tid *string
		var row table.Row
		if err := rows.Scan(row.Fields(&now, &pages, &tid)...); err != nil {
			return nil, nil, err
		}
		if tid == nil {
			continue // an empty range has one row of nulls
		}
		r, err := row.Record()
		page = append(page, listed{store.Found{Record: r, Now: store.Time(now)}, row.ID.Bytes, pgwire.Explain("list", err)})
		if len(page) == pageSize {
			if last, err = table.ParsePlace(*tid); err != nil {
				return nil, nil, err
			}
			last.Part = from.Part
		}
	}
	if start, more := s.next(last, pages); more {
		next = &start
	}
	return page, next, rows.Err()
}

// A step of a sweep reads sweepPages pages, and one statement deletes up to sweepChunk
// rows, so that a sweep holds locks for a short time only.
const (
	sweepPages = 128
	sweepChunk = 500
)

// Sweep deletes expired records, and returns the records whose lease has expired without
// a settlement. Package sweep calls it. The cursor is a place on the disk: Sweep reads
// the table in the order of the disk, without an index. It skips locked rows, and records
// that cannot be read; Get and List report such records.
func (s *Store) Sweep(ctx context.Context, from store.Cursor, limit int) (store.SweepResult, error) {
	if s.closed.Load() {
		return store.SweepResult{}, ErrClosed
	}
	if err := ctx.Err(); err != nil {
		return store.SweepResult{}, err
	}
	start := table.Place{}
	if from != "" {
		var err error
		end := table.Place{Part: len(s.parts)}
		start, err = table.ParsePlace(string(from))
		if err != nil || start.Part >= len(s.parts) && (start != end || len(s.parts) == 1) {
			return store.SweepResult{}, fmt.Errorf("pgstore: sweep cursor %q is not of this store", from)
		}
		if start == end {
			if name := s.gone.Swap(nil); name != nil { // nil: an earlier step has returned the error
				return store.SweepResult{}, pgwire.Explain("sweep", errGone(*name))
			}
			start = table.Place{} // the pass after the error goes on at its cursor
		}
	}
	if limit <= 0 {
		limit = 1
	}
	page, err := s.findExpired(ctx, start, limit)
	for start.Part+1 < len(s.parts) && (err == nil && page.empty || s.notesGone(start.Part, err)) {
		start = table.Place{Part: start.Part + 1}
		page, err = s.findExpired(ctx, start, limit)
	}
	if s.notesGone(start.Part, err) { // the last one; if the whole table is gone, this says so
		var now int64
		err = s.ownPool.QueryRow(ctx, "SELECT "+table.WallClock+" WHERE "+table.Literal(s.quoted()+".semel_record")+"::regclass IS NOT NULL").Scan(&now)
		page = expiredPage{now: store.Time(now)}
	}
	if err != nil {
		return store.SweepResult{}, pgwire.Explain("sweep", err)
	}
	res := store.SweepResult{Now: page.now, Lapsed: page.lapsed, Next: page.next}
	if res.Next == "" && s.gone.Load() != nil { // the next step returns the error
		res.Next = store.Cursor(table.Place{Part: len(s.parts)}.String())
	}
	for len(page.expired) > 0 {
		n := min(sweepChunk, len(page.expired))
		deleted := 0
		err := pgwire.Retry(func() error {
			return s.ownPool.QueryRow(ctx, s.parts[start.Part].deleteExpired, page.expired[:n], store.Micros(res.Now)).Scan(&deleted, nil)
		})
		if err != nil {
			return store.SweepResult{}, pgwire.Explain("sweep", err)
		}
		res.Deleted += deleted
		page.expired = page.expired[n:]
	}
	return res, nil
}

// next is the place after p in a partition of so many pages, or false at the end.
func (s *Store) next(p table.Place, pages int64) (table.Place, bool) {
	if p.Page < pages {
		return p, true
	}
	return table.Place{Part: p.Part + 1}, p.Part+1 < len(s.parts)
}

// expiredPage is the result of findExpired.
type expiredPage struct {
	now     time.Time
	expired []string // tids
	lapsed  []store.Record
	next    store.Cursor
	empty   bool // the partition has no pages
}

// findExpired finds up to limit rows that have expired or whose leases have lapsed,
// after a place.
func (s *Store) findExpired(ctx context.Context, from table.Place, limit int) (expiredPage, error) {
	var page expiredPage
	end := from.PagesAfter(sweepPages)
	rows, err := s.ownPool.Query(ctx, s.parts[from.Part].findExpired, from.TID(), end.TID(), int64(limit))
	if err != nil {
		return page, err
	}
	defer rows.Close()
	seen, last := 0, end
	var pages int64
	for rows.Next() {
		var now int64
		var tid *string
		var expired pgtype.Bool
		var row table.Row
		if err := rows.Scan(row.Fields(&now, &pages, &tid, &expired)...); err != nil {
			return page, err
		}
		page.now = store.Time(now)
		if tid == nil {
			continue // an empty range has one row of nulls
		}
		if seen++; seen == limit {
			if last, err = table.ParsePlace(*tid); err != nil {
				return page, err
			}
			last.Part = from.Part
		}
		if expired.Bool {
			page.expired = append(page.expired, *tid)
		} else if r, err := row.Record(); err == nil {
			page.lapsed = append(page.lapsed, r)
		}
	}
	page.empty = pages == 0
	if seen == limit {
		page.next = store.Cursor(last.String())
	} else if end, more := s.next(last, pages); more {
		page.next = store.Cursor(end.String())
	}
	return page, rows.Err()
}
