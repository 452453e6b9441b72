package memstore

import (
	"bytes"
	"fmt"
	"runtime"
	"testing"
	"time"

	"github.com/semel-go/semel/store"
)

// filled has n completed records in one shard, each hundredth of them kept for
// an hour, the others for a minute, and a body of the size.
func filled(t *testing.T, n, size int) (*Store, *time.Time) {
	t.Helper()
	now := time.Date(2026, 11, 20, 12, 0, 0, 0, time.UTC)
	s := New(&Options{Now: func() time.Time { return now }})
	full := s.hash
	s.hash = func(k store.Key) uint64 { return full(k) * mostShards }
	for i := range n {
		keep := time.Minute
		if i%100 == 0 {
			keep = time.Hour
		}
		f, err := s.Claim(t.Context(), store.Proposal{Key: key(i), State: store.Processing, Owner: store.Owner{1}, Attempt: 1, Lease: time.Minute})
		if err != nil || !f.Won {
			t.Fatalf("claim %d: won %v, error %v", i, f.Won, err)
		}
		end := store.Settlement{State: store.Completed, Keep: keep, Outcome: store.Outcome{Body: bodyOf(i, size)}}
		if err := s.Settle(t.Context(), f.Record.Lease(), end); err != nil {
			t.Fatal(err)
		}
	}
	return s, &now
}

func key(i int) store.Key { return store.Key{Operation: "op", Value: fmt.Sprint("key ", i)} }

func bodyOf(i, size int) []byte { return bytes.Repeat([]byte{byte(i)}, size) }

// held is how much memory the pages take, and how much of it rows.
func held(s *Store) (total, live int) {
	for i := range s.shard {
		for _, p := range s.shard[i].pages.all {
			total += cap(p.mem)
			live += p.live
		}
	}
	return total, live
}

func TestASweepGivesMemoryBack(t *testing.T) {
	for _, size := range []int{0, 100, 3000, 20_000} {
		s, now := filled(t, 2000, size)
		full, _ := held(s)
		*now = now.Add(2 * time.Minute)
		for from := store.Cursor(""); ; {
			res, err := s.Sweep(t.Context(), from, 300)
			if err != nil {
				t.Fatal(err)
			}
			if from = res.Next; from == "" {
				break
			}
		}
		total, live := held(s)
		if total > 2*live+2*lastPage || live > full/50 {
			t.Errorf("bodies of %d bytes: of %d bytes %d are taken, for rows of %d", size, full, total, live)
		}
		for i := range 2000 {
			f, err := s.Get(t.Context(), key(i))
			switch kept := i%100 == 0; {
			case kept && (err != nil || !bytes.Equal(f.Record.Outcome.Body, bodyOf(i, size))):
				t.Fatalf("key %d: %d bytes, error %v", i, len(f.Record.Outcome.Body), err)
			case !kept && err == nil:
				t.Fatalf("key %d is still there", i)
			}
		}
	}
}

// Pages that have gone leave their numbers to new ones, and whoever reads a
// body that went with its page reads it still.
func TestABodyStaysAfterItsRecord(t *testing.T) {
	s, now := filled(t, 500, 100)
	var bodies [][]byte
	for i := range 500 {
		f, err := s.Get(t.Context(), key(i))
		if err != nil {
			t.Fatal(err)
		}
		bodies = append(bodies, f.Record.Outcome.Body)
	}
	pages := 0
	for round := range 3 {
		*now = now.Add(2 * time.Hour)
		if _, err := s.Sweep(t.Context(), "", 10_000); err != nil {
			t.Fatal(err)
		}
		for i := range 500 {
			p := store.Proposal{Key: key(1000*(round+1) + i), State: store.Failed, Keep: time.Hour, Outcome: store.Outcome{Body: bodyOf(0, 100)}}
			if _, err := s.Claim(t.Context(), p); err != nil {
				t.Fatal(err)
			}
		}
		n := 0
		for i := range s.shard {
			n += len(s.shard[i].pages.all)
		}
		if round > 0 && n > pages+1 {
			t.Errorf("round %d: %d pages, and %d before", round, n, pages)
		}
		pages = n
	}
	runtime.GC()
	for i, b := range bodies {
		if !bytes.Equal(b, bodyOf(i, 100)) {
			t.Fatalf("the body of key %d became %q", i, b)
		}
	}
}

// Also of rows that have each a page to themselves, the first of which comes
// before any other page.
func TestALargeRowTakesItsMemoryWithIt(t *testing.T) {
	s, now := filled(t, 50, 2*ownPage)
	*now = now.Add(2 * time.Hour)
	if res, err := s.Sweep(t.Context(), "", 100); err != nil || res.Deleted != 50 {
		t.Fatalf("deleted %d, error %v", res.Deleted, err)
	}
	if total, _ := held(s); total != 0 {
		t.Errorf("%d bytes are taken for no row", total)
	}
	f, err := s.Claim(t.Context(), store.Proposal{Key: key(1), State: store.Failed, Keep: time.Hour, Outcome: store.Outcome{Body: bodyOf(1, 10)}})
	if err != nil || len(f.Record.Outcome.Body) != 10 {
		t.Errorf("after that: %+v, error %v", f.Record, err)
	}
}
