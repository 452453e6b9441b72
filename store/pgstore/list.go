package pgstore

import (
	"context"
	"iter"

	"github.com/semel-go/semel/store"
	"github.com/semel-go/semel/store/pgstore/internal/pgwire"
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
	rows, err := s.own.Query(ctx, s.parts[from.part].list, from.tid(), last.tid(), orNull([]byte(f.Operation)), orNull([]byte(f.Tenant)),
		stateBits(f.States), after(max(f.Idle, 0), true).Int64, int64(pageSize))
	if err != nil {
		return nil, nil, err
	}
	defer rows.Close()
	var pages int64
	for rows.Next() {
		var now int64
		var at *string
		var w row
		if err := rows.Scan(w.fields(&now, &pages, &at)...); err != nil {
			return nil, nil, err
		}
		if at == nil {
			continue // the one row of an empty part
		}
		r, err := w.record()
		page = append(page, listed{store.Found{Record: r, Now: store.Time(now)}, w.id.Bytes, pgwire.Explain("list", err)})
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
