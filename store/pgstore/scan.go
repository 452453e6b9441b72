package pgstore

import (
	"context"
	"errors"
	"fmt"
	"iter"
	"strconv"
	"strings"
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
			if err != nil {
				yield(store.Found{}, pgwire.Explain("list", err))
				return
			}
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
	next := &place{}
	return func() (page []listed, more bool, err error) {
		page, next, err = s.page(ctx, f, *next)
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
func (s *Store) page(ctx context.Context, f *store.Filter, from place) (page []listed, next *place, err error) {
	if s.closed.Load() {
		return nil, nil, ErrClosed
	}
	last := from.pagesAfter(sweepPages)
	rows, err := s.ownPool.Query(ctx, s.parts[from.part].list, from.tid(), last.tid(), table.OrNull([]byte(f.Operation)), table.OrNull([]byte(f.Tenant)),
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
			if last, err = parsePlace(*tid); err != nil {
				return nil, nil, err
			}
			last.part = from.part
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
	start := place{}
	if from != "" {
		var err error
		end := place{part: len(s.parts)}
		start, err = parsePlace(string(from))
		if err != nil || start.part >= len(s.parts) && (start != end || len(s.parts) == 1) {
			return store.SweepResult{}, fmt.Errorf("pgstore: sweep cursor %q is not of this store", from)
		}
		if start == end {
			if err := s.errGone(); err != nil {
				return store.SweepResult{}, err
			}
			start = place{} // the pass after the error goes on at its cursor
		}
	}
	if limit <= 0 {
		limit = 1
	}
	page, err := s.findExpired(ctx, start, limit)
	for (err == nil && page.empty || s.isGone(start.part, err)) && start.part+1 < len(s.parts) {
		start = place{part: start.part + 1}
		page, err = s.findExpired(ctx, start, limit)
	}
	if err != nil {
		return store.SweepResult{}, pgwire.Explain("sweep", err)
	}
	res := store.SweepResult{Now: page.now, Lapsed: page.lapsed, Next: page.next}
	if res.Next == "" && s.gone.Load() != nil { // the next step returns the error
		res.Next = store.Cursor(place{part: len(s.parts)}.String())
	}
	for len(page.expired) > 0 {
		n := min(sweepChunk, len(page.expired))
		deleted := 0
		err := pgwire.Retry(func() error {
			return s.ownPool.QueryRow(ctx, s.parts[start.part].deleteExpired, page.expired[:n], store.Micros(res.Now)).Scan(&deleted, nil)
		})
		if err != nil {
			return store.SweepResult{}, pgwire.Explain("sweep", err)
		}
		res.Deleted += deleted
		page.expired = page.expired[n:]
	}
	return res, nil
}

// place is the place of a row: partition, page and item number. Page and number have a
// meaning only together with their partition.
type place struct {
	part int // 0: the first one, or a table without partitions
	page int64
	item int
}

// tid is the ctid within the partition.
func (p place) tid() string { return fmt.Sprintf("(%d,%d)", p.page, p.item) }

func (p place) String() string {
	if p.part == 0 {
		return p.tid()
	}
	return strconv.Itoa(p.part) + p.tid()
}

func parsePlace(text string) (p place, err error) {
	if number, tid, ok := strings.Cut(text, "("); ok && number != "" {
		if p.part, err = strconv.Atoi(number); err != nil {
			return p, err
		}
		_, err = fmt.Sscanf("("+tid, "(%d,%d)", &p.page, &p.item)
	} else {
		_, err = fmt.Sscanf(text, "(%d,%d)", &p.page, &p.item)
	}
	if err == nil && (p.part < 0 || p.page < 0 || p.page > 1<<32-1 || p.item < 0 || p.item > 1<<16-1 || p.String() != text) {
		err = errors.New("not a place in the table")
	}
	return p, err
}

// pagesAfter is the place n pages later.
func (p place) pagesAfter(n int64) place { return place{p.part, min(p.page+n, 1<<32-1), 0} }

// next is the place after p in a partition of so many pages, or false at the end.
func (s *Store) next(p place, pages int64) (place, bool) {
	if p.page < pages {
		return p, true
	}
	return place{part: p.part + 1}, p.part+1 < len(s.parts)
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
func (s *Store) findExpired(ctx context.Context, from place, limit int) (expiredPage, error) {
	var page expiredPage
	end := from.pagesAfter(sweepPages)
	rows, err := s.ownPool.Query(ctx, s.parts[from.part].findExpired, from.tid(), end.tid(), int64(limit))
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
			if last, err = parsePlace(*tid); err != nil {
				return page, err
			}
			last.part = from.part
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
