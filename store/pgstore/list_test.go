package pgstore

import (
	"fmt"
	"sync"
	"testing"

	"github.com/semel-go/semel/store"
)

// A table of several parts: more pages than one step looks at, and more rows
// in some than one page of a list has.
func TestListAndSweep_LargeTable_Complete(t *testing.T) {
	t.Parallel()
	t.Run("one table", func(t *testing.T) { listedAndSweptWhole(t, openNew(t, nil)) })
	t.Run("partitions", func(t *testing.T) { listedAndSweptWhole(t, openNew(t, &Options{Partitions: 3})) })
}

func listedAndSweptWhole(t *testing.T, s *Store) {
	t.Helper()
	table := s.quoted() + ".semel_record"
	mustExec(t, s.ownPool, `INSERT INTO `+table+` (id, owner, state, policy, attempt, until, expires, created, updated, format, fence,
		operation, tenant, key, holder, fingerprint_alg, fingerprint_key, fingerprint, last_error)
		SELECT gen_random_uuid(), gen_random_uuid(), 4, 0, 1, 0, 1, 1, 1, 1, 1, 'filler', '', '', '', '', '', '', '' FROM generate_series(1, 30000)`)
	want := map[string]bool{}
	for i := range 700 {
		want[complete(t, s, itoa(i), "result").Key.Value] = true
	}
	if pages := ask[int](t, s.ownPool, "SELECT sum(pg_table_size(c.oid)) / 8192 FROM pg_class c WHERE c.relnamespace = to_regnamespace($1) AND c.relkind = 'r' AND c.relname LIKE 'semel\\_record%'", s.quoted()); pages <= sweepPages {
		t.Fatalf("the table has %d pages only", pages)
	}
	got := map[string]int{}
	for f, err := range s.List(t.Context(), store.Filter{Operation: "charge"}) {
		if err != nil {
			t.Fatal(err)
		}
		got[f.Record.Key.Value]++
	}
	for k := range want {
		if got[k] != 1 {
			t.Errorf("%s was given %d times", k, got[k])
		}
	}
	if len(got) != len(want) {
		t.Errorf("%d records were given, want %d", len(got), len(want))
	}
	deleted, steps := 0, 0
	for from := store.Cursor(""); ; steps++ {
		res, err := s.Sweep(t.Context(), from, 1700)
		if err != nil {
			t.Fatal(err)
		}
		deleted += res.Deleted
		if from = res.Next; from == "" {
			break
		}
	}
	if deleted != 30000 || steps < 17 {
		t.Errorf("%d rows were swept in %d steps, want 30000 in 17 or more", deleted, steps)
	}
	if left := ask[int](t, s.ownPool, fmt.Sprintf("SELECT count(*) FROM %s", table)); left != 700 {
		t.Errorf("%d rows are left, want 700", left)
	}
}

// claimMany claims so many keys at once.
func claimMany(t *testing.T, s *Store, n int) {
	t.Helper()
	var all sync.WaitGroup
	for i := range n {
		all.Go(func() {
			if f, err := s.Claim(t.Context(), proposal(itoa(i))); err != nil || !f.Won {
				t.Errorf("claim of %d: won %v, error %v", i, f.Won, err)
			}
		})
	}
	all.Wait()
}

// listedOnce lists so many keys, each of which is to be given once; first is
// called with the first one.
func listedOnce(t *testing.T, s *Store, n int, first func()) {
	t.Helper()
	got, given := map[string]int{}, 0
	for f, err := range s.List(t.Context(), store.Filter{}) {
		if err != nil {
			t.Fatal(err)
		}
		if given++; given > 3*n {
			t.Fatalf("it does not end; %d keys so far", len(got))
		}
		if given == 1 {
			first()
		}
		got[f.Record.Key.Value]++
	}
	for i := range n {
		if got[itoa(i)] != 1 {
			t.Errorf("%d was given %d times", i, got[itoa(i)])
		}
	}
}

// A page that is full is gone on behind in the same partition.
func TestList_Partitions_EachReadOnce(t *testing.T) {
	t.Parallel()
	s := openNew(t, &Options{Partitions: 2})
	const keys = 2*pageSize + 200
	claimMany(t, s, keys)
	listedOnce(t, s, keys, func() {})
}

// A record that changes during a list moves to another page, and is not listed twice.
func TestList_RecordMoves_ListedOnce(t *testing.T) {
	t.Parallel()
	s := openNew(t, &Options{Partitions: 1})
	const keys = pageSize + 50
	claimMany(t, s, keys)
	listedOnce(t, s, keys, func() {
		table := s.quoted() + ".semel_record"
		mustExec(t, s.ownPool, "UPDATE "+table+" SET holder = decode(repeat(md5(key), 60), 'hex') WHERE id IN (SELECT id FROM "+table+" ORDER BY ctid LIMIT 256)")
	})
}
