package pgstore

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/semel-go/semel/store"
	"github.com/semel-go/semel/store/pgstore/internal/pgwire"
	"github.com/semel-go/semel/store/pgstore/internal/table"
	"github.com/semel-go/semel/sweep"
)

// sweepAll is one pass.
func sweepAll(t *testing.T, s *Store) (deleted int) {
	t.Helper()
	for from := store.Cursor(""); ; {
		res, err := s.Sweep(t.Context(), from, 100)
		if err != nil {
			t.Fatal(err)
		}
		deleted += res.Deleted
		if from = res.Next; from == "" {
			return deleted
		}
	}
}

// A sweep finds places, and deletes what is in them by a second statement. In
// between another row may have come to a place, so that one judges again.
func TestSweep_RowChangedMeanwhile_NotDeleted(t *testing.T) {
	t.Parallel()
	s := openFixedClockIn(t, 0)
	complete(t, s, "expired", "result")
	complete(t, s, "of a later version", "result")
	mustExec(t, s.ownPool, "UPDATE "+s.quoted()+".semel_record SET format = 2 WHERE id = $1", table.ID(testKey("of a later version")))
	advance(t, s, 2*time.Hour)
	complete(t, s, "kept", "result")
	claim(t, s, "running")
	parked := claim(t, s, "parked")
	if err := s.Settle(t.Context(), parked.Lease(), store.Settlement{State: store.Unknown, Attempt: 1}); err != nil {
		t.Fatal(err)
	}
	f, err := s.Get(t.Context(), testKey("kept"))
	if err != nil {
		t.Fatal(err)
	}
	places := ask[[]string](t, s.ownPool, "SELECT array_agg(ctid::text) FROM "+s.quoted()+".semel_record")
	var deleted int
	if err := s.ownPool.QueryRow(t.Context(), s.parts[0].deleteExpired, places, store.Micros(f.Now)).Scan(&deleted, nil); err != nil {
		t.Fatal(err)
	}
	left := ask[string](t, s.ownPool, "SELECT string_agg(convert_from(key, 'UTF8'), ', ' ORDER BY key) FROM "+s.quoted()+".semel_record")
	if want := "kept, of a later version, parked, running"; len(places) != 5 || deleted != 1 || left != want {
		t.Errorf("of %d places %d were deleted; left are %s, want %s", len(places), deleted, left, want)
	}
}

// A step that its limit has ended is gone on with in the same partition: else the
// places behind are passed over, or met again, and a pass may never end.
func TestSweep_Partitions_EachOnce(t *testing.T) {
	t.Parallel()
	s := openFixedClockIn(t, 3)
	const keys = 12
	for i := range keys {
		claim(t, s, itoa(i))
	}
	advance(t, s, time.Hour)
	handed := map[string]int{}
	for from, steps := store.Cursor(""), 0; from != "" || steps == 0; steps++ {
		if steps > 3*keys {
			t.Fatalf("it does not end; handed back so far: %v", handed)
		}
		res, err := s.Sweep(t.Context(), from, 1)
		if err != nil {
			t.Fatal(err)
		}
		for _, r := range res.Lapsed {
			handed[r.Key.Value]++
		}
		from = res.Next
	}
	for i := range keys {
		if n := handed[itoa(i)]; n != 1 {
			t.Errorf("%d was handed back %d times", i, n)
		}
	}
}

// A crash may undo relaxed claims and deletions by a sweep. Every other commit waits
// for the disk, also on a connection that has run those.
func TestCommit_WaitsForDisk_ExceptRelaxedClaimsAndSweeps(t *testing.T) {
	t.Parallel()
	for _, relaxed := range []bool{true, false} {
		s := openNew(t, &Options{RelaxedClaims: relaxed, Connections: 1})
		for _, db := range []pgwire.Execer{s.ownPool, s.renewalPool} {
			mustExec(t, db, "SET synchronous_commit = on")
		}
		mustExec(t, s.ownPool, fmt.Sprintf(`CREATE TABLE %[1]s.commits (wait text NOT NULL);
			CREATE FUNCTION %[1]s.note() RETURNS trigger LANGUAGE plpgsql AS $$
			BEGIN INSERT INTO %[1]s.commits VALUES (current_setting('synchronous_commit')); RETURN NULL; END $$;
			CREATE CONSTRAINT TRIGGER note AFTER INSERT OR UPDATE OR DELETE ON %[1]s.semel_record DEFERRABLE INITIALLY DEFERRED
				FOR EACH ROW EXECUTE FUNCTION %[1]s.note()`, s.quoted()))
		swap := func(was store.Record, to store.State) store.Record {
			p := proposal(was.Key.Value)
			p.State = to
			f, err := s.Swap(t.Context(), was.Seen(), p)
			if err != nil || !f.Won {
				t.Fatalf("swap to %v: won %v, error %v", to, f.Won, err)
			}
			return f.Record
		}
		var r store.Record
		for _, c := range []struct {
			what string
			off  bool
			fn   func()
		}{
			{"a claim", relaxed, func() { r = claim(t, s, "a") }},
			{"a take-over", relaxed, func() { r = swap(r, store.Processing) }},
			{"a renewal", false, func() { _, _ = s.Renew(t.Context(), []store.Lease{r.Lease()}, time.Minute) }},
			{"a swap to unknown", false, func() { swap(get(t, s, "a"), store.Unknown) }},
			{"a swap to completed", false, func() { swap(get(t, s, "a"), store.Completed) }},
			{"a batch of claims", relaxed, func() {
				r = claimBatch(s, ptr(proposal("b")), ptr(proposal("c")))[0].Res.Record
			}},
			{"a settlement", false, func() {
				if err := s.Settle(t.Context(), r.Lease(), completion("result")); err != nil {
					t.Error(err)
				}
			}},
			{"what makes it expire", false, func() {
				mustExec(t, s.ownPool, "UPDATE "+s.quoted()+".semel_record SET expires = 1 WHERE id = $1", table.ID(testKey("b")))
			}},
			{"a sweep", true, func() {
				if n := sweepAll(t, s); n != 1 {
					t.Errorf("%d were swept", n)
				}
			}},
		} {
			c.fn()
			want := map[bool]string{true: "off", false: "on"}[c.off]
			rows, err := s.ownPool.Query(t.Context(), "DELETE FROM "+s.quoted()+".commits RETURNING wait")
			if err != nil {
				t.Fatal(err)
			}
			waits, err := pgx.CollectRows(rows, pgx.RowTo[string])
			if err != nil || len(waits) == 0 {
				t.Fatalf("%s: %q, %v", c.what, waits, err)
			}
			for _, is := range waits {
				if is != want {
					t.Errorf("relaxed %v: %s committed with synchronous_commit %s, want %s", relaxed, c.what, is, want)
				}
			}
			if is := ask[string](t, s.ownPool, "SELECT current_setting('synchronous_commit')"); is != "on" {
				t.Errorf("relaxed %v: %s left synchronous_commit %s behind", relaxed, c.what, is)
			}
		}
	}
}

// A partition is detached and dropped while the store is open. A sweep deletes what has expired
// in the others, and then ends with an error that names it.
func TestSweep_PartitionDropped_OthersAreSwept(t *testing.T) {
	t.Parallel()
	for _, dropped := range []int{0, 2, 3} {
		s := openNew(t, &Options{Partitions: 4})
		dropPartition(t, s, dropped)
		done := 0
		for i := range 40 {
			f, err := s.Claim(t.Context(), proposal(itoa(i)))
			if err != nil { // its partition is gone
				continue
			}
			if err := s.Settle(t.Context(), f.Record.Lease(), store.Settlement{State: store.Completed, Attempt: 1, Keep: time.Microsecond}); err != nil {
				t.Fatal(err)
			}
			done++
		}
		for pass := range 2 {
			deleted, next, err := 0, store.Cursor(""), error(nil)
			for steps := 0; steps < 20; steps++ {
				var res store.SweepResult
				if res, err = s.Sweep(t.Context(), next, 100); err != nil {
					break
				}
				deleted += res.Deleted
				if next = res.Next; next == "" {
					break
				}
			}
			want := done
			if pass > 0 {
				want = 0
			}
			if deleted != want || err == nil || !strings.Contains(err.Error(), "semel_record_p00"+itoa(dropped)) || !strings.Contains(err.Error(), "open the store again") {
				t.Errorf("partition %d is gone, pass %d: %d deleted, want %d; error %v, want one that names the partition", dropped, pass, deleted, want, err)
			}
		}
	}
}

// A pass that ends because a partition is gone ends at a cursor, from which the next one begins.
func TestSweep_PartitionDropped_EachPassSweepsOthers(t *testing.T) {
	t.Parallel()
	for _, dropped := range []int{0, 2, 3} {
		s := openNew(t, &Options{Partitions: 4})
		dropPartition(t, s, dropped)
		next := 0
		expire := func() { // one more record, in a partition that is there
			for ; ; next++ {
				f, err := s.Claim(t.Context(), proposal(itoa(next)))
				if err != nil {
					continue
				}
				if err := s.Settle(t.Context(), f.Record.Lease(), store.Settlement{State: store.Completed, Attempt: 1, Keep: time.Microsecond}); err != nil {
					t.Error(err)
				}
				next++
				return
			}
		}
		ctx, cancel := context.WithCancel(t.Context())
		defer cancel()
		passes := 0
		expire()
		err := sweep.Run(ctx, s, &sweep.Options{Every: time.Millisecond, AfterPass: func(got sweep.Stats, err error) {
			passes++
			if got.Deleted != 1 || err == nil || !strings.Contains(err.Error(), "semel_record_p00"+itoa(dropped)) {
				t.Errorf("partition %d is gone, pass %d: %d deleted, want 1; error %v, want one that names the partition", dropped, passes, got.Deleted, err)
			}
			if expire(); passes == 5 {
				cancel()
			}
		}})
		if err != nil || passes != 5 {
			t.Errorf("%v, %d passes", err, passes)
		}
	}
}

// dropPartition removes a partition of the records, as an operator may do while processes run.
func dropPartition(t *testing.T, s *Store, part int) {
	t.Helper()
	mustExec(t, s.ownPool, "ALTER TABLE "+s.quoted()+".semel_record DETACH PARTITION "+s.parts[part].name)
	mustExec(t, s.ownPool, "DROP TABLE "+s.parts[part].name+" CASCADE")
}

// An erasure and the console's search use such a list.
func TestList_PartitionDropped_OthersAreListed(t *testing.T) {
	t.Parallel()
	for _, dropped := range []int{0, 2, 3} {
		s := openNew(t, &Options{Partitions: 4})
		dropPartition(t, s, dropped)
		want := 0
		for i := range 40 {
			if _, err := s.Claim(t.Context(), proposal(itoa(i))); err == nil {
				want++
			}
		}
		listed := 0
		var last error
		for _, err := range s.List(t.Context(), store.Filter{}) {
			if last = err; err == nil {
				listed++
			}
		}
		if listed != want || last == nil || !strings.Contains(last.Error(), "semel_record_p00"+itoa(dropped)) || !strings.Contains(last.Error(), "open the store again") {
			t.Errorf("partition %d is gone: %d listed, want %d; the last error is %v, want one that names the partition", dropped, listed, want, last)
		}
	}
}

// That is no partition that is gone, but the whole table.
func TestSweepAndList_TableDropped_ErrSchema(t *testing.T) {
	t.Parallel()
	s := openNew(t, &Options{Partitions: 4})
	mustExec(t, s.ownPool, "DROP TABLE "+s.quoted()+".semel_record CASCADE")
	if _, err := s.Sweep(t.Context(), "", 100); !errors.Is(err, ErrSchema) {
		t.Errorf("Sweep: %v, want ErrSchema", err)
	}
	var last error
	for _, err := range s.List(t.Context(), store.Filter{}) {
		last = err
	}
	if !errors.Is(last, ErrSchema) {
		t.Errorf("List: %v, want ErrSchema", last)
	}
}
