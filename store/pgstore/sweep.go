package pgstore

import (
	"context"
	"fmt"
	"time"

	"github.com/jackc/pgx/v5/pgtype"

	"github.com/semel-go/semel/store"
)

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
		if at, err = parsePlace(string(from)); err != nil {
			return store.SweepResult{}, fmt.Errorf("pgstore: sweep cursor %q is not of this store", from)
		}
	}
	if limit <= 0 {
		limit = 1
	}
	part, err := s.over(ctx, at, limit)
	if err != nil {
		return store.SweepResult{}, explain("sweep", err)
	}
	res := store.SweepResult{Now: part.now, Lapsed: part.lapsed, Next: part.next}
	for len(part.expired) > 0 {
		n := min(sweepChunk, len(part.expired))
		deleted := 0
		err := retry(func() error {
			return s.own.QueryRow(ctx, s.sql.remove, part.expired[:n], store.Micros(res.Now)).Scan(&deleted, nil)
		})
		if err != nil {
			return store.SweepResult{}, explain("sweep", err)
		}
		res.Deleted += deleted
		part.expired = part.expired[n:]
	}
	return res, nil
}

// place is a row's place in the table: page and number.
type place struct {
	page int64
	item int
}

func (p place) String() string { return fmt.Sprintf("(%d,%d)", p.page, p.item) }

func parsePlace(text string) (p place, err error) {
	_, err = fmt.Sscanf(text, "(%d,%d)", &p.page, &p.item)
	if err == nil && (p.page < 0 || p.page > 1<<32-1 || p.item < 0 || p.item > 1<<16-1 || p.String() != text) {
		err = fmt.Errorf("not a place")
	}
	return p, err
}

// pagesAfter is the place that is n pages on.
func (p place) pagesAfter(n int64) place { return place{min(p.page+n, 1<<32-1), 0} }

// part is a part of the table, as a sweep sees it.
type part struct {
	now     time.Time
	expired []string // places
	lapsed  []store.Record
	next    store.Cursor
}

// over finds up to limit rows that are over, behind a place.
func (s *Store) over(ctx context.Context, from place, limit int) (part, error) {
	var p part
	to := from.pagesAfter(sweepPages)
	rows, err := s.own.Query(ctx, s.sql.over, from.String(), to.String(), int64(limit))
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
		var w row
		if err := rows.Scan(w.fields(&now, &pages, &at, &isOver)...); err != nil {
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
		}
		if isOver.Bool {
			p.expired = append(p.expired, *at)
		} else if r, err := w.record(); err == nil {
			p.lapsed = append(p.lapsed, r)
		}
	}
	if seen == limit || last.page < pages {
		p.next = store.Cursor(last.String())
	}
	return p, rows.Err()
}
