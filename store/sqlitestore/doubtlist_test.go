package sqlitestore

import (
	"errors"
	"testing"
	"time"

	"github.com/semel-go/semel/store"
)

// plan is how SQLite runs a statement of the store.
func plan(t *testing.T, s *Store, which stmt, args ...any) (steps string) {
	t.Helper()
	rows, err := application(t, s, "").QueryContext(t.Context(), "EXPLAIN QUERY PLAN "+statements[which], args...)
	if err != nil {
		t.Fatal(err)
	}
	defer rows.Close()
	for rows.Next() {
		var id, parent, unused int
		var step string
		if err := rows.Scan(&id, &parent, &unused, &step); err != nil {
			t.Fatal(err)
		}
		steps += step + "\n"
	}
	if err := rows.Err(); err != nil {
		t.Fatal(err)
	}
	return steps
}

// The list of the records in doubt reads an index that has no other records, and needs
// no sorting. With the statistics of a table in which nearly all records are in doubt
// it does so, too.
func TestList_InDoubt_UsesIndex(t *testing.T) {
	t.Parallel()
	s := openNew(t, nil)
	const want = "SEARCH semel_record USING INDEX semel_in_doubt (state=? AND rowid>?)\n"
	if got := plan(t, s, stListDoubts, 0, 1); got != want {
		t.Errorf("the plan is %q, want %q", got, want)
	}
	for i := range 300 {
		r := claim(t, s, itoa(i))
		if err := s.Settle(t.Context(), r.Lease(), store.Settlement{State: store.Unknown, Attempt: 1}); err != nil {
			t.Fatal(err)
		}
	}
	mustExec(t, application(t, s, ""), "ANALYZE")
	if got := plan(t, s, stListDoubts, 0, 1); got != want {
		t.Errorf("with statistics the plan is %q, want %q", got, want)
	}
	n := 0
	for _, err := range s.List(t.Context(), store.Filter{States: []store.State{store.Unknown}}) {
		if err != nil {
			t.Fatal(err)
		}
		n++
	}
	if n != 300 {
		t.Errorf("%d records are in doubt, want 300", n)
	}
}

// The timers that are due are found by their index, in its order, and the others are not
// read.
func TestDueTimers_ReadsNoOtherTimers(t *testing.T) {
	t.Parallel()
	s := openNew(t, nil)
	const want = "SEARCH semel_timer USING INDEX semel_due (operation=? AND due<?)\n"
	for range 2 {
		if got := plan(t, s, stDueTimers, "order##saga", 0); got != want {
			t.Errorf("the plan is %q, want %q", got, want)
		}
		for i := range 300 {
			key := store.Key{Operation: "order##saga", Value: itoa(i)}
			if _, err := s.SetTimer(t.Context(), key, store.Owner{}, store.Owner{1}, 0); err != nil {
				t.Fatal(err)
			}
		}
		mustExec(t, application(t, s, ""), "ANALYZE")
	}
}

// A timer that cannot be read does not stop the other sagas of its name, also if it is the
// first of a small page.
func TestDueTimers_OneUnreadable_OthersAreFound(t *testing.T) {
	t.Parallel()
	s := openNew(t, nil)
	for i := range 3 {
		if set, err := s.SetTimer(t.Context(), testKey(itoa(i)), store.Owner{}, store.Owner{1}, time.Duration(i)*time.Second); err != nil || !set {
			t.Fatalf("set %v, error %v", set, err)
		}
	}
	if _, err := application(t, s, immediate).Exec("UPDATE semel_timer SET version = x'00' WHERE key = '0'"); err != nil {
		t.Fatal(err)
	}
	due, _, err := s.DueTimers(t.Context(), testKey("").Operation, time.Hour, 2)
	if len(due) != 2 || !errors.Is(err, store.ErrCorrupt) {
		t.Errorf("%d timers, error %v; want 2 and ErrCorrupt", len(due), err)
	}
}
