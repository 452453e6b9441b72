package pgstore

import (
	"context"
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

// List implements store.Lister. It looks at the whole table, in parts, and
// between two parts holds nothing on the server. It remembers which records
// it has given, 16 bytes each, because one that changes moves on. A record
// that cannot be read is given as an error that wraps store.ErrCorrupt, and
// the list goes on behind it; any other error ends it.
func (s *Store) List(ctx context.Context, f store.Filter) iter.Seq2[store.Found, error] {
	return func(yield func(store.Found, error) bool) {
		given, seen := 0, map[[16]byte]struct{}{}
		for from, more := (place{}), true; more; {
			page, next, err := s.page(ctx, &f, from)
			if err != nil {
				yield(store.Found{}, pgwire.Explain("list", err))
				return
			}
			for _, fd := range page {
				if _, again := seen[fd.id]; again || fd.err == nil && !f.Match(&fd.Record, fd.Now) {
					continue
				}
				if f.Limit > 0 && given >= f.Limit || !yield(fd.Found, fd.err) {
					return
				}
				given++
				seen[fd.id] = struct{}{}
			}
			if more = next != nil; more {
				from = *next
			}
		}
	}
}

// pageSize is how many records List reads at a time: each may be large.
const pageSize = 256

// listed is a record, or why it cannot be read.
type listed struct {
	store.Found
	id  [16]byte
	err error
}

// page reads the next part, and where the one behind it begins, nil if there
// is none.
func (s *Store) page(ctx context.Context, f *store.Filter, from place) (page []listed, next *place, err error) {
	if s.closed.Load() {
		return nil, nil, ErrClosed
	}
	last := from.pagesAfter(sweepPages)
	rows, err := s.own.Query(ctx, s.parts[from.part].list, from.tid(), last.tid(), table.OrNull([]byte(f.Operation)), table.OrNull([]byte(f.Tenant)),
		stateBits(f.States), table.Micros(max(f.Idle, 0), true).Int64, int64(pageSize))
	if err != nil {
		return nil, nil, err
	}
	defer rows.Close()
	var pages int64
	for rows.Next() {
		var now int64
		var at *string
		var w table.Row
		if err := rows.Scan(w.Fields(&now, &pages, &at)...); err != nil {
			return nil, nil, err
		}
		if at == nil {
			continue // the one row of an empty part
		}
		r, err := w.Record()
		page = append(page, listed{store.Found{Record: r, Now: store.Time(now)}, w.ID.Bytes, pgwire.Explain("list", err)})
		if len(page) == pageSize {
			if last, err = parsePlace(*at); err != nil {
				return nil, nil, err
			}
			last.part = from.part
		}
	}
	if to, more := s.next(last, pages); more {
		next = &to
	}
	return page, next, rows.Err()
}

// stateBits has the bit of each state; 0 selects all.
func stateBits(states []store.State) (bits int64) {
	for _, st := range states {
		if st.Valid() {
			bits |= 1 << st
		} else {
			bits |= 1 // no row's bit
		}
	}
	return bits
}

// How many pages of the table a step looks at, and how many rows one statement
// deletes at most: nobody waits for a sweep, and it holds nothing for long.
const (
	sweepPages = 128
	sweepChunk = 500
)

// Sweep implements store.Store. It walks through the table in the order of the
// disk, and needs no index; the cursor is a place there. It deletes nothing
// that another transaction holds, and passes over records that cannot be
// read: Get and List report them.
func (s *Store) Sweep(ctx context.Context, from store.Cursor, limit int) (store.SweepResult, error) {
	if s.closed.Load() {
		return store.SweepResult{}, ErrClosed
	}
	if err := ctx.Err(); err != nil {
		return store.SweepResult{}, err
	}
	at := place{}
	if from != "" {
		var err error
		if at, err = parsePlace(string(from)); err != nil || at.part >= len(s.parts) {
			return store.SweepResult{}, fmt.Errorf("pgstore: sweep cursor %q is not of this store", from)
		}
	}
	if limit <= 0 {
		limit = 1
	}
	found, err := s.over(ctx, at, limit)
	for err == nil && found.empty && at.part+1 < len(s.parts) {
		at = place{part: at.part + 1}
		found, err = s.over(ctx, at, limit)
	}
	if err != nil {
		return store.SweepResult{}, pgwire.Explain("sweep", err)
	}
	res := store.SweepResult{Now: found.now, Lapsed: found.lapsed, Next: found.next}
	for len(found.expired) > 0 {
		n := min(sweepChunk, len(found.expired))
		deleted := 0
		err := pgwire.Retry(func() error {
			return s.own.QueryRow(ctx, s.parts[at.part].deleteExpired, found.expired[:n], store.Micros(res.Now)).Scan(&deleted, nil)
		})
		if err != nil {
			return store.SweepResult{}, pgwire.Explain("sweep", err)
		}
		res.Deleted += deleted
		found.expired = found.expired[n:]
	}
	return res, nil
}

// place is a row's place: partition, page and number. A page and a number mean
// nothing without their partition.
type place struct {
	part int // 0: the first, or the table that has none
	page int64
	item int
}

// tid is the place in its partition.
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
		err = fmt.Errorf("not a place")
	}
	return p, err
}

// pagesAfter is the place that is n pages on.
func (p place) pagesAfter(n int64) place { return place{p.part, min(p.page+n, 1<<32-1), 0} }

// next is where the table goes on behind a place in a partition of so many
// pages; false at its end.
func (s *Store) next(p place, pages int64) (place, bool) {
	if p.page < pages {
		return p, true
	}
	return place{part: p.part + 1}, p.part+1 < len(s.parts)
}

// over are rows that a sweep has found.
type over struct {
	now     time.Time
	expired []string // places
	lapsed  []store.Record
	next    store.Cursor
	empty   bool // the partition is
}

// over finds up to limit rows that are over, behind a place.
func (s *Store) over(ctx context.Context, from place, limit int) (over, error) {
	var p over
	to := from.pagesAfter(sweepPages)
	rows, err := s.own.Query(ctx, s.parts[from.part].findExpired, from.tid(), to.tid(), int64(limit))
	if err != nil {
		return p, err
	}
	defer rows.Close()
	seen, last := 0, to
	var pages int64
	for rows.Next() {
		var now int64
		var at *string
		var isOver pgtype.Bool
		var w table.Row
		if err := rows.Scan(w.Fields(&now, &pages, &at, &isOver)...); err != nil {
			return p, err
		}
		p.now = store.Time(now)
		if at == nil {
			continue // the one row of an empty part
		}
		if seen++; seen == limit {
			if last, err = parsePlace(*at); err != nil {
				return p, err
			}
			last.part = from.part
		}
		if isOver.Bool {
			p.expired = append(p.expired, *at)
		} else if r, err := w.Record(); err == nil {
			p.lapsed = append(p.lapsed, r)
		}
	}
	p.empty = pages == 0
	if seen == limit {
		p.next = store.Cursor(last.String())
	} else if to, more := s.next(last, pages); more {
		p.next = store.Cursor(to.String())
	}
	return p, rows.Err()
}

// part is one partition of the table of records, or the whole table if it has none.
// A row's place (ctid) is unique within a part only, so statements that use places
// name the part.
type part struct {
	findExpired, deleteExpired, list string // statements
}

func (s *Store) partsOf(tables []string) []part {
	parts := make([]part, len(tables))
	for i, name := range tables {
		in := strings.NewReplacer("{part}", name, "{part name}", table.Literal(name))
		parts[i] = part{in.Replace(s.sql.FindExpired), in.Replace(s.sql.DeleteExpired), in.Replace(s.sql.List)}
	}
	return parts
}
