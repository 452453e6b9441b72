package store_test

import (
	"reflect"
	"testing"
	"time"

	"github.com/semel-go/semel/store"
)

const noonMicros = 1_795_176_000_000_000 // noon, in microseconds

// proposal is a proposal with all fields.
func proposal(s store.State) store.Proposal {
	return store.Proposal{
		Key: store.Key{Operation: "op", Tenant: "t", Value: "k"}, State: s, Policy: store.Park, Owner: store.Owner{9}, Holder: "host/1",
		Fingerprint: store.Fingerprint{Alg: "a", KeyID: "i", Sum: "s"}, Attempt: 3, Lease: time.Minute, Keep: time.Hour,
		Outcome: store.Outcome{Code: 201, Body: []byte("b")}, Error: "e",
	}
}

// made is the record that proposal makes at noon, written by hand.
func made(s store.State, fence uint64, created time.Time) store.Record {
	p := proposal(s)
	r := store.Record{
		Key: p.Key, State: s, Policy: p.Policy, Fence: fence, Owner: p.Owner, Holder: p.Holder, Fingerprint: p.Fingerprint, Attempt: 3,
		LastError: "e", Created: created, Updated: noon, Format: 1,
	}
	switch s {
	default: // Unknown has neither Until nor Expires
	case store.Started, store.Processing:
		r.Until = noon.Add(time.Minute)
	case store.Released:
		r.Until, r.Expires = noon.Add(time.Minute), noon.Add(time.Hour)
	case store.Completed, store.Failed:
		r.Outcome, r.Completed, r.Expires = p.Outcome, noon, noon.Add(time.Hour)
	}
	return r
}

func TestInsert_Proposal_MakesRecord(t *testing.T) {
	for s := store.Started; s <= store.Unknown; s++ {
		p := proposal(s)
		local := noon.Add(999).In(time.FixedZone("x", 3600)) // is cut to microseconds and turned into UTC
		if got, want := p.Insert(local, 0), made(s, noonMicros, noon); !reflect.DeepEqual(got, want) {
			t.Errorf("as %v:\n got %+v\nwant %+v", s, got, want)
		}
	}
}

func TestFence_FloorOrClock_ExceedsBoth(t *testing.T) {
	for _, c := range []struct {
		now   time.Time
		above uint64
		want  uint64
	}{
		{noon, 0, noonMicros}, {noon, 5, noonMicros}, {noon, noonMicros - 1, noonMicros}, {noon, noonMicros, noonMicros + 1}, {noon, noonMicros + 7, noonMicros + 8},
		{time.Unix(0, 0), 0, 1}, {time.Unix(-1000, 0), 0, 1}, {time.Unix(-1000, 0), 41, 42}, {time.Unix(0, 2000), 0, 2},
	} {
		p := proposal(store.Processing)
		if r := p.Insert(c.now, c.above); r.Fence != c.want {
			t.Errorf("inserted at %v above %d: fence %d, want %d", c.now, c.above, r.Fence, c.want)
		}
		if r := p.Replace(&store.Record{Fence: c.above}, c.now); r.Fence != c.want {
			t.Errorf("replaced at %v above %d: fence %d, want %d", c.now, c.above, r.Fence, c.want)
		}
	}
}

func TestReplace_AnyStates_KeepsOnlyCreated(t *testing.T) {
	for from := store.Started; from <= store.Unknown; from++ {
		for to := store.Started; to <= store.Unknown; to++ {
			old := made(from, noonMicros+100, noon.Add(-time.Hour))
			old.Owner, old.Holder, old.LastError, old.Attempt, old.Policy = store.Owner{1}, "other", "old", 9, store.Retry
			was := old
			p := proposal(to)
			if got, want := p.Replace(&old, noon), made(to, noonMicros+101, old.Created); !reflect.DeepEqual(got, want) {
				t.Errorf("%v to %v:\n got %+v\nwant %+v", from, to, got, want)
			}
			p.Restart = true
			if got, want := p.Replace(&old, noon), made(to, noonMicros+101, noon); !reflect.DeepEqual(got, want) {
				t.Errorf("restart of %v as %v:\n got %+v\nwant %+v", from, to, got, want)
			}
			if !reflect.DeepEqual(old, was) {
				t.Errorf("%v to %v: Replace changed the old record", from, to)
			}
		}
	}
}

func TestApply_Settlement_EndsClaim(t *testing.T) {
	for _, s := range []store.State{store.Released, store.Completed, store.Failed, store.Unknown} {
		held := made(store.Processing, noonMicros-50, noon.Add(-time.Hour))
		held.Updated = noon.Add(-time.Minute)
		end := store.Settlement{
			State: s, Attempt: 2, Outcome: store.Outcome{Code: 201, Body: []byte("b")}, Error: "e", Wait: time.Minute, Keep: time.Hour,
		}
		want := made(s, noonMicros-50, held.Created) // owner, fence and fingerprint stay
		want.Attempt = 2
		if got := end.Apply(held, noon); !reflect.DeepEqual(got, want) {
			t.Errorf("as %v:\n got %+v\nwant %+v", s, got, want)
		}
	}
}

func TestApply_Release_ExpiresAfterLongerOfWaitAndKeep(t *testing.T) {
	for _, c := range []struct{ wait, keep, until, expires time.Duration }{
		{0, 0, 0, 0}, {time.Minute, 0, time.Minute, time.Minute}, {0, time.Minute, 0, time.Minute},
		{time.Minute, time.Hour, time.Minute, time.Hour}, {time.Hour, time.Minute, time.Hour, time.Hour},
	} {
		s := store.Settlement{State: store.Released, Wait: c.wait, Keep: c.keep}
		r := s.Apply(made(store.Processing, 1, noon), noon)
		if r.Until.Sub(noon) != c.until || r.Expires.Sub(noon) != c.expires {
			t.Errorf("wait %v, keep %v: Until after %v and Expires after %v, want %v and %v", c.wait, c.keep, r.Until.Sub(noon), r.Expires.Sub(noon), c.until, c.expires)
		}
	}
}

func TestDone_SameStateAndOutcome_IsTrue(t *testing.T) {
	for s := store.Started; s <= store.Unknown; s++ {
		for i, kept := range variants() {
			r := made(s, 1, noon)
			r.Outcome = kept
			for to := store.Released; to <= store.Unknown; to++ {
				for j, sent := range variants() {
					end := store.Settlement{State: to, Outcome: sent}
					want := s == to && (i == j || to == store.Released || to == store.Unknown)
					if got := end.Done(&r); got != want {
						t.Fatalf("a %v record with %+v, settled as %v with %+v: Done is %v", s, kept, to, sent, got)
					}
				}
			}
		}
	}
}
