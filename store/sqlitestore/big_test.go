package sqlitestore

import (
	"context"
	"errors"
	"testing"
	"time"

	"github.com/semel-go/semel/store"
)

// fill copies the first record n times, to keys of its own.
func fill(t *testing.T, s *Store, n int) {
	t.Helper()
	values := make([]any, 0, n)
	for i := range n {
		values = append(values, "copy"+itoa(i))
	}
	tx, err := application(t, s, immediate).Begin()
	if err != nil {
		t.Fatal(err)
	}
	defer tx.Rollback()
	st, err := tx.Prepare(`INSERT INTO semel_record (id, key, state, policy, fence, owner, attempt, until, expires, created, updated, completed, format,
		operation, tenant, holder, fingerprint_alg, fingerprint_key, fingerprint, last_error)
		SELECT ?, ?, state, policy, fence, owner, attempt, until, expires, created, updated, completed, format,
		operation, tenant, holder, fingerprint_alg, fingerprint_key, fingerprint, last_error FROM semel_record WHERE n = 1`)
	if err != nil {
		t.Fatal(err)
	}
	for _, v := range values {
		id := testKey(v.(string)).ID()
		if _, err := st.Exec(id[:], v); err != nil {
			t.Fatal(err)
		}
	}
	if err := tx.Commit(); err != nil {
		t.Fatal(err)
	}
}

func TestList_ManyRows_ReadsAllPages(t *testing.T) {
	t.Parallel()
	s := openNew(t, nil)
	claim(t, s, "seed")
	const n = 2*pageSize + 10
	fill(t, s, n-1)
	seen := map[store.Key]bool{}
	for f, err := range s.List(context.Background(), store.Filter{}) {
		if err != nil {
			t.Fatal(err)
		}
		seen[f.Record.Key] = true
	}
	if len(seen) != n {
		t.Errorf("List gave %d records, want %d", len(seen), n)
	}
	given := 0
	for range s.List(context.Background(), store.Filter{Limit: pageSize + 5}) {
		given++
	}
	if given != pageSize+5 {
		t.Errorf("List with a limit of %d gave %d", pageSize+5, given)
	}
	for range s.List(context.Background(), store.Filter{States: []store.State{99}}) {
		t.Fatal("List gave a record in a state that is none")
	}
}

// A step looks at a part of the table only, however little there is to do, and
// a pass gets through all of it.
func TestSweep_Step_ReadsOneWindow(t *testing.T) {
	t.Parallel()
	c := newClock()
	s := openNew(t, &Options{Now: c.Now})
	claim(t, s, "seed")
	s.sweepWindow = 500
	fill(t, s, 2*s.sweepWindow) // all live
	complete(t, s, "last", "x")
	if _, err := s.Renew(context.Background(), nil, 0); err != nil {
		t.Fatal(err)
	}
	mustExec(t, application(t, s, immediate), "UPDATE semel_record SET until = until + 1000000000000 WHERE state = 2")
	c.advance(2 * time.Hour)
	steps, deleted := 0, 0
	for from := store.Cursor(""); steps == 0 || from != ""; steps++ {
		res, err := s.Sweep(context.Background(), from, 10)
		if err != nil || len(res.Lapsed) != 0 {
			t.Fatalf("step %d: %d lapsed, error %v", steps, len(res.Lapsed), err)
		}
		deleted += res.Deleted
		from = res.Next
	}
	if steps != 3 || deleted != 1 {
		t.Errorf("a pass took %d steps and deleted %d, want 3 and 1", steps, deleted)
	}
	if _, err := s.Sweep(context.Background(), "seventeen", 10); err == nil {
		t.Error("a cursor of another store was taken")
	}
}

// A record that is refused leaves nothing: without its outcome it would say that the work
// is done.
func TestClaim_OutcomeTooLarge_InsertsNothing(t *testing.T) {
	t.Parallel()
	s := openNew(t, nil)
	p := proposal("k")
	p.State, p.Keep, p.Outcome = store.Completed, time.Hour, store.Outcome{Code: 200, Body: make([]byte, maxOutcome+1)}
	if f, err := s.Claim(t.Context(), p); !errors.Is(err, store.ErrTooLarge) || f.Won {
		t.Errorf("won %v, error %v; want ErrTooLarge", f.Won, err)
	}
	if f, err := s.Get(t.Context(), p.Key); !errors.Is(err, store.ErrNotFound) {
		t.Errorf("the store has a %v record, error %v; want none", f.Record.State, err)
	}
}
