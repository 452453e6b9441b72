package nearcache_test

import (
	"context"
	"testing"
	"time"

	"github.com/semel-go/semel/store"
	"github.com/semel-go/semel/store/nearcache"
	"github.com/semel-go/semel/store/storetest"
)

// slow is a store in which a test does something between a change or a read
// and its reply.
type slow struct {
	store.Store
	get, claim, settle func()
}

func during(fn *func()) {
	if f := *fn; f != nil {
		*fn = nil
		f()
	}
}

func (s *slow) Get(ctx context.Context, k store.Key) (store.Found, error) {
	f, err := s.Store.Get(ctx, k)
	during(&s.get)
	return f, err
}

func (s *slow) Claim(ctx context.Context, p store.Proposal) (store.Found, error) {
	f, err := s.Store.Claim(ctx, p)
	during(&s.claim)
	return f, err
}

func (s *slow) Settle(ctx context.Context, l store.Lease, t store.Settlement) error {
	err := s.Store.Settle(ctx, l, t)
	during(&s.settle)
	return err
}

// An answer that was on its way when the record was swapped here does not come
// in after it.
func TestSwap_EarlierAnswerArrivesLate_IsNotCached(t *testing.T) {
	for _, what := range []string{"get", "claim", "settle"} {
		w := newWorld(t, nil)
		s := &slow{Store: w.mem}
		c := newCache(t, s, &nearcache.Options{Now: w.here.Now})
		swap := func() {
			f := get(t, w.mem, "k")
			if f, err := c.Swap(t.Context(), f.Record.Seen(), proposal("k")); err != nil || !f.Won {
				t.Error(err)
			}
		}
		switch what {
		case "get":
			complete(t, w.mem, "k", time.Hour)
			s.get = swap
			get(t, c, "k")
		case "claim":
			complete(t, w.mem, "k", time.Hour)
			s.claim = swap
			claim(t, c, "k")
		case "settle":
			f := claim(t, c, "k")
			s.settle = swap
			if err := c.Settle(t.Context(), f.Record.Lease(), settlement(time.Hour)); err != nil {
				t.Fatal(err)
			}
		}
		if f := claim(t, c, "k"); f.Record.State != store.Processing {
			t.Errorf("after a %s that a swap overtook, a claim finds it %v", what, f.Record.State)
		}
	}
}

// A long trip counts: the clock that an answer tells may be of its beginning.
func TestLifetime_SlowStore_CountsFromBeforeAsking(t *testing.T) {
	for _, what := range []string{"get", "claim"} {
		w := newWorld(t, nil)
		s := &slow{Store: w.mem}
		c := newCache(t, s, &nearcache.Options{Now: w.here.Now, Skew: 1, MaxAge: time.Hour})
		complete(t, w.mem, "k", time.Minute)
		trip := func() { w.pass(50 * time.Second) }
		s.get, s.claim = trip, trip
		map[string]func(testing.TB, store.Store, string) store.Found{"get": get, "claim": claim}[what](t, c, "k")
		w.pass(9900 * time.Millisecond)
		s.get, s.claim = nil, nil
		asked := 0
		s.claim = func() { asked++ }
		if f := claim(t, c, "k"); asked != 0 || f.Record.Expired(f.Now) || !f.Now.Equal(get(t, w.mem, "k").Now) {
			t.Errorf("%s: it is not kept for as long as it could be: asked %d times, Now %v", what, asked, f.Now)
		}
		w.pass(100 * time.Millisecond)
		if f := claim(t, c, "k"); asked != 1 || !f.Record.Expired(f.Now) {
			t.Errorf("%s: it is kept beyond its life: asked %d times", what, asked)
		}
	}
}

// The store may have settled early in a long trip: then the record expires
// earlier.
func TestLifetime_OwnOutcome_ExpiresNoLaterThanStores(t *testing.T) {
	w := newWorld(t, nil)
	s := &slow{Store: w.mem}
	c := newCache(t, s, &nearcache.Options{Now: w.here.Now, Skew: 1, MaxAge: time.Hour})
	s.claim = func() { w.pass(7 * time.Second) } // told long after the store's clock was read
	f := claim(t, c, "k")
	w.pass(20 * time.Second)
	s.settle = func() { w.pass(30 * time.Second) }
	if err := c.Settle(t.Context(), f.Record.Lease(), settlement(time.Minute)); err != nil {
		t.Fatal(err)
	}
	real := get(t, w.mem, "k").Record
	got := claim(t, c, "k").Record
	if got.Expires.After(real.Expires) || got.Completed.After(real.Completed) || got.Updated != got.Completed || real.Expires.Sub(got.Expires) > 8*time.Second {
		t.Errorf("expires %v and was completed %v; in the store %v and %v", got.Expires, got.Completed, real.Expires, real.Completed)
	}
	got.Expires, got.Completed, got.Updated = real.Expires, real.Completed, real.Updated
	if got.Seen() != real.Seen() || !got.Outcome.Equal(real.Outcome) || got.Created != real.Created || got.Fingerprint != real.Fingerprint ||
		got.Attempt != real.Attempt || got.Holder != real.Holder || got.Policy != real.Policy || got.Format != real.Format {
		t.Errorf("beside its times it is\n%+v, want\n%+v", got, real)
	}
}

// The store applied the first sending of the settlement, whose answer was lost.
func TestLifetime_SettledByFirstOfTwoSendings_ExpiresNoLaterThanStores(t *testing.T) {
	w := newWorldBehind(t, &nearcache.Options{Skew: 1, MaxAge: time.Hour}, func(op storetest.Op, n int) storetest.Mode {
		if op == storetest.OpSettle && n == 1 {
			return storetest.LostReply
		}
		return storetest.None
	})
	f := claim(t, w, "k")
	if err := w.Settle(t.Context(), f.Record.Lease(), settlement(time.Minute)); err == nil {
		t.Fatal("the fault was not injected")
	}
	w.pass(10 * time.Second)
	if err := w.Settle(t.Context(), f.Record.Lease(), settlement(time.Minute)); err != nil {
		t.Fatal(err)
	}
	w.trip(t, 0, "a duplicate", func() { claim(t, w, "k") })
	w.pass(55 * time.Second)
	if real, got := get(t, w.mem, "k"), claim(t, w, "k"); real.Record.Expired(real.Now) && !got.Record.Expired(got.Now) {
		t.Errorf("the record has expired at %v, and the cache answers until %v", real.Record.Expires, got.Record.Expires)
	}
}

// The store's clock goes back, and the process's does not.
func TestLifetime_StoreClockSetBack_RecordStillExpires(t *testing.T) {
	w := newWorld(t, &nearcache.Options{Skew: 1, MaxAge: time.Hour})
	complete(t, w, "k", time.Minute)
	w.there.Advance(-time.Hour)
	w.here.Advance(59 * time.Second)
	w.trip(t, 0, "within its life by the process's clock", func() { claim(t, w, "k") })
	w.here.Advance(time.Second)
	w.trip(t, 1, "beyond it", func() { claim(t, w, "k") })
}
