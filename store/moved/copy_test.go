package moved_test

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/semel-go/semel/store"
	"github.com/semel-go/semel/store/moved"
)

func TestCopy_EachState_CopiesWhatHasEnded(t *testing.T) {
	to, from := stores()
	for _, s := range states {
		put(t, from, key(s.String()), s)
	}
	short := store.Proposal{Key: key("lapsed"), State: store.Processing, Owner: owner(7), Lease: time.Minute}
	if _, err := from.Claim(t.Context(), short); err != nil {
		t.Fatal(err)
	}
	from.advance(2 * time.Minute)
	var inFlight []string
	stats, err := moved.Copy(t.Context(), to, from, &moved.CopyOptions{Workers: 1, InFlight: func(r store.Record) { inFlight = append(inFlight, r.Key.Value) }})
	if want := (moved.CopyStats{Read: 7, Copied: 6, InFlight: 1}); err != nil || stats != want || strings.Join(inFlight, " ") != "processing" {
		t.Errorf("%+v, in flight %v, %v", stats, inFlight, err)
	}
	for _, s := range append(states, store.Processing) {
		k := key(s.String())
		if s == store.Processing {
			continue
		}
		a, b := get(t, from, k), get(t, to, k)
		if a.Fence != b.Fence || a.State != b.State || !a.Outcome.Equal(b.Outcome) || !a.Updated.Equal(b.Updated) {
			t.Errorf("%v: %+v became %+v", s, a, b)
		}
	}
	stats, err = moved.Copy(t.Context(), to, from, nil)
	if want := (moved.CopyStats{Read: 7, There: 6, InFlight: 1}); err != nil || stats != want {
		t.Errorf("again: %+v, %v", stats, err)
	}
	verified, err := moved.Verify(t.Context(), to, from, nil)
	if want := (moved.VerifyStats{Read: 7, Same: 6, InFlight: 1}); err != nil || verified != want || verified.Complete() {
		t.Errorf("%+v, %v", verified, err)
	}
}

func TestCopy_Expired_IsLeft(t *testing.T) {
	to, from := stores()
	put(t, from, key("k"), store.Completed)
	from.advance(2 * time.Hour)
	stats, err := moved.Copy(t.Context(), to, from, nil)
	if want := (moved.CopyStats{Read: 1, Expired: 1}); err != nil || stats != want {
		t.Errorf("%+v, %v", stats, err)
	}
}

func TestCopy_NewStoreHasGoneOn_NothingOverwritten(t *testing.T) {
	to, from := stores()
	put(t, from, key("k"), store.Released)
	if _, err := moved.Copy(t.Context(), to, from, nil); err != nil {
		t.Fatal(err)
	}
	before := get(t, to, key("k"))
	seen := before.Seen()
	f, err := to.Swap(t.Context(), seen, store.Proposal{Key: key("k"), State: store.Completed, Owner: owner(8), Keep: time.Hour, Outcome: store.Outcome{Code: 200}})
	if err != nil || !f.Won {
		t.Fatalf("%+v, %v", f, err)
	}
	for range 2 {
		stats, err := moved.Copy(t.Context(), to, from, nil)
		if want := (moved.CopyStats{Read: 1, There: 1}); err != nil || stats != want {
			t.Errorf("%+v, %v", stats, err)
		}
	}
	if r := get(t, to, key("k")); r.State != store.Completed || r.Owner != owner(8) {
		t.Errorf("the record was overwritten: %+v", r)
	}
	verified, err := moved.Verify(t.Context(), to, from, nil)
	if want := (moved.VerifyStats{Read: 1, Later: 1}); err != nil || verified != want || !verified.Complete() {
		t.Errorf("%+v, %v", verified, err)
	}
}

func TestCopy_OldStoreHasGoneOn_CopyIsRenewed(t *testing.T) {
	to, from := stores()
	put(t, from, key("k"), store.Released)
	if _, err := moved.Copy(t.Context(), to, from, nil); err != nil {
		t.Fatal(err)
	}
	from.advance(time.Second)
	before := get(t, from, key("k"))
	seen := before.Seen()
	if f, err := from.Swap(t.Context(), seen, store.Proposal{Key: key("k"), State: store.Completed, Owner: owner(8), Keep: time.Hour, Outcome: store.Outcome{Code: 200}}); err != nil || !f.Won {
		t.Fatalf("%+v, %v", f, err)
	}
	var differences []moved.Difference
	verified, err := moved.Verify(t.Context(), to, from, func(d moved.Difference) { differences = append(differences, d) })
	if err != nil || verified.Different != 1 || len(differences) != 1 || !strings.Contains(differences[0].Problem, "state") {
		t.Errorf("before: %+v, %+v, %v", verified, differences, err)
	}
	stats, err := moved.Copy(t.Context(), to, from, nil)
	if want := (moved.CopyStats{Read: 1, Copied: 1}); err != nil || stats != want {
		t.Errorf("%+v, %v", stats, err)
	}
	if r := get(t, to, key("k")); r.State != store.Completed {
		t.Errorf("the new store still has %+v", r)
	}
}

func TestCopy_Saga_HasTimer(t *testing.T) {
	to, from := stores()
	open := store.Key{Operation: "trip##saga", Tenant: "ann", Value: "open"}
	put(t, from, open, store.Released)
	put(t, from, store.Key{Operation: "trip##saga", Tenant: "ann", Value: "done"}, store.Completed)
	if _, err := moved.Copy(t.Context(), to, from, nil); err != nil {
		t.Fatal(err)
	}
	due, _, err := to.DueTimers(t.Context(), "trip##saga", time.Second, 10)
	if err != nil || len(due) != 1 || due[0].Key != open {
		t.Errorf("due are %+v, %v", due, err)
	}
}

// small is a store that keeps no large outcome.
type small struct{ *clocked }

func (s small) Receive(ctx context.Context, r store.Record, steps []store.Step) (store.Found, error) {
	if len(r.Outcome.Body) > 10 {
		return store.Found{}, store.ErrTooLarge
	}
	return s.clocked.Receive(ctx, r, steps)
}

func TestCopy_AnswerTooLargeForNewStore_LeavesTombstone(t *testing.T) {
	to, from := stores()
	put(t, from, key("a long key"), store.Completed)
	stats, err := moved.Copy(t.Context(), small{to}, from, nil)
	if want := (moved.CopyStats{Read: 1, Copied: 1, Tombstones: 1}); err != nil || stats != want {
		t.Errorf("%+v, %v", stats, err)
	}
	if o := get(t, to, key("a long key")).Outcome; !o.Gone || o.Code != 201 || len(o.Body) > 0 {
		t.Errorf("%+v", o)
	}
	verified, err := moved.Verify(t.Context(), small{to}, from, nil)
	if want := (moved.VerifyStats{Read: 1, Tombstones: 1}); err != nil || verified != want || !verified.Complete() {
		t.Errorf("%+v, %v", verified, err)
	}
}

func TestCopy_DryRun_ChangesNothing(t *testing.T) {
	to, from := stores()
	put(t, from, key("a"), store.Completed)
	put(t, from, key("b"), store.Unknown)
	if _, err := moved.Copy(t.Context(), to, from, nil); err != nil {
		t.Fatal(err)
	}
	put(t, from, key("c"), store.Completed)
	stats, err := moved.Copy(t.Context(), to, from, &moved.CopyOptions{DryRun: true})
	if want := (moved.CopyStats{Read: 3, Copied: 1, There: 2}); err != nil || stats != want {
		t.Errorf("%+v, %v", stats, err)
	}
	if _, err := to.Get(t.Context(), key("c")); !errors.Is(err, store.ErrNotFound) {
		t.Errorf("a dry run copied a record: %v", err)
	}
}

func TestCopy_EndedInTheMiddle_GoesOnLater(t *testing.T) {
	to, from := stores()
	const records = 3000
	for i := range records {
		put(t, from, key(fmt.Sprint(i)), store.Completed)
	}
	ctx, cancel := context.WithCancel(t.Context())
	var once sync.Once
	stats, err := moved.Copy(ctx, to, from, &moved.CopyOptions{Progress: func(moved.CopyStats) { once.Do(cancel) }})
	if !errors.Is(err, context.Canceled) || stats.Copied == 0 || stats.Copied == records {
		t.Fatalf("%+v, %v", stats, err)
	}
	rest, err := moved.Copy(t.Context(), to, from, nil)
	if err != nil || rest.Copied+rest.There != records || rest.There < stats.Copied {
		t.Errorf("first %+v, then %+v, %v", stats, rest, err)
	}
	verified, err := moved.Verify(t.Context(), to, from, nil)
	if err != nil || verified.Same != records {
		t.Errorf("%+v, %v", verified, err)
	}
}

func TestVerify_RecordMissing_IsNamed(t *testing.T) {
	to, from := stores()
	put(t, from, key("k"), store.Unknown)
	var differences []moved.Difference
	verified, err := moved.Verify(t.Context(), to, from, func(d moved.Difference) { differences = append(differences, d) })
	if err != nil || verified.Missing != 1 || verified.Complete() || len(differences) != 1 || differences[0] != (moved.Difference{Key: key("k"), Problem: "missing"}) {
		t.Errorf("%+v, %+v, %v", verified, differences, err)
	}
}
