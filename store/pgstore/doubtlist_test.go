package pgstore

import (
	"fmt"
	"slices"
	"testing"

	"github.com/semel-go/semel/store"
)

// inDoubt are the keys of the records in doubt, sorted.
func inDoubt(t *testing.T, s *Store) (keys []string) {
	t.Helper()
	for f, err := range s.List(t.Context(), store.Filter{States: []store.State{store.Unknown}}) {
		if err != nil {
			t.Fatal(err)
		}
		keys = append(keys, f.Record.Key.Value)
	}
	slices.Sort(keys)
	return keys
}

// rowsRead is how many rows of records the server has read, by any plan, and how often
// it has read a table as a whole.
func rowsRead(t *testing.T, s *Store) int {
	t.Helper()
	mustExec(t, s.ownPool, "SELECT pg_stat_force_next_flush()")
	return ask[int](t, s.ownPool, `SELECT sum(seq_scan + seq_tup_read + coalesce(idx_tup_fetch, 0))::int FROM pg_stat_user_tables
		WHERE schemaname = $1 AND relname LIKE 'semel\_record%'`, s.options.Schema)
}

// A list of the records in doubt reads those, and no others.
func TestList_InDoubt_ReadsNoOtherRecords(t *testing.T) {
	t.Parallel()
	bothTables(t, func(t *testing.T, partitions int) {
		s := openNew(t, &Options{Connections: 1, Flushers: 1, Partitions: partitions})
		const count = pageSize + 10
		var want []string
		for i := range count {
			r := claim(t, s, itoa(i))
			if err := s.Settle(t.Context(), r.Lease(), store.Settlement{State: store.Unknown, Attempt: 1, Error: "lost"}); err != nil {
				t.Fatal(err)
			}
			want = append(want, itoa(i))
		}
		slices.Sort(want)
		fill(t, s.ownPool, s.quoted()+".semel_record")
		before := rowsRead(t, s)
		if got := inDoubt(t, s); !slices.Equal(got, want) {
			t.Errorf("%d records are in doubt, want %d", len(got), len(want))
		}
		if n := rowsRead(t, s) - before; n > count {
			t.Errorf("it read %d rows of records; %d are in doubt", n, count)
		}
	})
}

// What Check, and opening a store without migrating it, asks the server does not grow
// with the number of records.
func TestCheck_ReadsNoRecords(t *testing.T) {
	t.Parallel()
	s := openNew(t, &Options{Connections: 1, Partitions: 2})
	complete(t, s, "k", "result")
	fill(t, s.ownPool, s.quoted()+".semel_record")
	before := rowsRead(t, s)
	again := openAt(t, s.ownPool.Config().ConnString(), &Options{Schema: s.options.Schema, NoMigrate: true, Connections: 1})
	_ = again.Check(t.Context()) // the test's server may be unsafe, on purpose
	mustExec(t, again.ownPool, "SELECT pg_stat_force_next_flush()")
	if n := rowsRead(t, s) - before; n != 0 {
		t.Errorf("it read %d rows of records", n)
	}
}

// Rows of semel_doubt are written only by changes into and out of doubt, in one
// transaction with the record.
func TestDoubts_WrittenWithRecord(t *testing.T) {
	t.Parallel()
	s := openNew(t, nil)
	rows := func() int {
		return ask[int](t, s.ownPool, fmt.Sprintf("SELECT count(*) FROM %s.semel_doubt", s.quoted()))
	}
	complete(t, s, "done", "result")
	parked := proposal("parked")
	parked.State, parked.Lease = store.Unknown, 0
	f, err := s.Claim(t.Context(), parked)
	if err != nil || !f.Won {
		t.Fatalf("claim: won %v, error %v", f.Won, err)
	}
	if n := rows(); n != 1 {
		t.Errorf("%d rows for one record in doubt", n)
	}
	for _, restart := range []bool{false, true} {
		p := proposal("parked")
		p.Restart = restart
		if f, err = s.Swap(t.Context(), f.Record.Seen(), p); err != nil || !f.Won || rows() != 0 {
			t.Fatalf("out of doubt: won %v, error %v, %d rows", f.Won, err, rows())
		}
		parked = proposal("parked")
		parked.State, parked.Lease, parked.Restart = store.Unknown, 0, restart
		if f, err = s.Swap(t.Context(), f.Record.Seen(), parked); err != nil || !f.Won || rows() != 1 {
			t.Fatalf("into doubt: won %v, error %v, %d rows", f.Won, err, rows())
		}
	}
	lost := f.Record.Lease()
	lost.Fence--
	if err := s.Settle(t.Context(), lost, store.Settlement{State: store.Unknown, Attempt: 1}); err == nil || rows() != 1 {
		t.Errorf("a settlement without the lease: %v, %d rows", err, rows())
	}
}

// The timers that are due are found by their index, and the others are not read.
func TestDueTimers_ReadsNoOtherTimers(t *testing.T) {
	t.Parallel()
	s := openNew(t, &Options{Connections: 1})
	mustExec(t, s.ownPool, `INSERT INTO `+s.quoted()+`.semel_timer (due, id, version, operation, tenant, key)
		SELECT 4000000000000000 + n, gen_random_uuid(), gen_random_uuid(), 'order##saga', '', n::text::bytea FROM generate_series(1, 20000) n`)
	mustExec(t, s.ownPool, "ANALYZE "+s.quoted()+".semel_timer")
	for i := range 3 {
		key := store.Key{Operation: "order##saga", Value: itoa(i)}
		if _, err := s.SetTimer(t.Context(), key, store.Owner{}, store.Owner{1}, 0); err != nil {
			t.Fatal(err)
		}
	}
	read := func() int {
		mustExec(t, s.ownPool, "SELECT pg_stat_force_next_flush()")
		return ask[int](t, s.ownPool, `SELECT (seq_scan + seq_tup_read + coalesce(idx_tup_fetch, 0))::int FROM pg_stat_user_tables
			WHERE schemaname = $1 AND relname = 'semel_timer'`, s.options.Schema)
	}
	before := read()
	due, _, err := s.DueTimers(t.Context(), "order##saga", 0, 100)
	if err != nil || len(due) != 3 {
		t.Errorf("%d timers are due, error %v; want 3", len(due), err)
	}
	if n := read() - before; n > 3 {
		t.Errorf("it read %d rows for 3 timers", n)
	}
}
