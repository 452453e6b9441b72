package sqlitestore

import (
	"context"
	"database/sql"
	"database/sql/driver"
	"encoding/hex"
	"iter"
	"math"

	"modernc.org/sqlite"

	"github.com/semel-go/semel/store"
)

// pageSize is how many rows List reads at a time. Between two pages it holds no
// read transaction, so that a slow caller does not make the write-ahead log grow.
const pageSize = 256

// List implements store.Lister. If f selects only records in doubt, it finds them by an
// index. Otherwise it reads the whole table: SQLite compares, and List reads the records that
// fit. For an unreadable record it yields an error that wraps store.ErrCorrupt and continues;
// any other error ends the list.
func (s *Store) List(ctx context.Context, f store.Filter) iter.Seq2[store.Found, error] {
	return func(yield func(store.Found, error) bool) {
		after, yielded := int64(math.MinInt64), 0
		for more := true; more; {
			page, err := s.page(ctx, &f, &after)
			if err != nil {
				yield(store.Found{}, explain("list", err))
				return
			}
			more = len(page) == pageSize
			for _, found := range page {
				if found.err == nil && !f.Match(&found.Record, found.Now) {
					continue
				}
				if f.Limit > 0 && yielded >= f.Limit || !yield(found.Found, found.err) {
					return
				}
				yielded++
			}
		}
	}
}

// listed is a record, or the error of an unreadable one.
type listed struct {
	store.Found
	err error
}

// page reads the next rows, and moves after to the last of them.
func (s *Store) page(ctx context.Context, f *store.Filter, after *int64) ([]listed, error) {
	if s.closed.Load() {
		return nil, ErrClosed
	}
	now := s.clock()
	idle := int64(math.MaxInt64)
	if f.Idle > 0 {
		idle = store.Micros(now.Add(-f.Idle))
	}
	ends := int64(0)
	if f.Expired {
		ends = store.Micros(now)
	}
	keys, hashes := namesIn(f)
	var rows *sql.Rows
	var err error
	if f.InDoubt() {
		rows, err = s.stmts.query(ctx, stListDoubts, *after, pageSize)
	} else {
		rows, err = s.stmts.query(ctx, stList, *after, f.Operation, f.Tenant, stateBits(f.States), idle, pageSize, ends, keys[0], keys[1], hashes[0], hashes[1])
	}
	if err != nil {
		return nil, err
	}
	defer rows.Close()
	var page []listed
	for rows.Next() {
		var w row
		r := store.Record{}
		err := w.scan(rows)
		if broken(err) {
			return nil, err
		}
		if err == nil {
			r, err = w.record()
		}
		*after = w.n
		page = append(page, listed{store.Found{Record: r, Now: now}, explain("list", err)})
	}
	return page, rows.Err()
}

// namesIn are the keys and the hashes of a filter for the statement, which has two of each:
// a missing one is nil, or equal to the other. Of a longer filter they are nil, so that the
// statement selects all, and List compares.
func namesIn(f *store.Filter) (keys, hashes [2]any) {
	if len(f.Keys) == 0 || len(f.Keys) > len(keys) {
		return keys, hashes
	}
	for i := range keys {
		keys[i] = f.Keys[min(i, len(f.Keys)-1)]
	}
	if found := f.Hashes(); len(found) > 0 {
		for i := range hashes {
			hashes[i] = hex.EncodeToString(found[min(i, len(found)-1)])
		}
	}
	return keys, hashes
}

// short is store.Key.Short as a function of SQL. Its arguments are the bytes of an operation, a
// tenant and a key, because the driver ends a text at a zero byte.
func short(_ *sqlite.FunctionContext, args []driver.Value) (driver.Value, error) {
	var fields [3]string
	for i := range fields {
		b, _ := args[i].([]byte) // an empty text has none
		fields[i] = string(b)
	}
	return store.Key{Operation: fields[0], Tenant: fields[1], Value: fields[2]}.Short(), nil
}

func init() { // the driver knows functions by their name, for all connections
	sqlite.MustRegisterDeterministicScalarFunction("semel_short", 3, short)
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
