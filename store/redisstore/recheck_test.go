package redisstore

import (
	"context"
	"errors"
	"strconv"
	"testing"
	"time"

	"github.com/semel-go/semel/store"
)

// What a sweep saw may have changed before it acts: it looks again in the same
// step, and leaves what is not over any more.
func TestASweepLooksAgainBeforeItActs(t *testing.T) {
	s := openNew(t, nil)
	end := func(state store.State, keep time.Duration) func(r store.Record) {
		return func(r store.Record) {
			t.Helper()
			if err := s.Settle(t.Context(), r.Lease(), store.Settlement{State: state, Attempt: 1, Keep: keep}); err != nil {
				t.Fatal(err)
			}
		}
	}
	for name, c := range map[string]struct {
		then         func(r store.Record)
		gone, lapsed bool
	}{
		"held":      {then: func(store.Record) {}},
		"lapsed":    {lapsed: true, then: func(r store.Record) { _, _ = s.Renew(t.Context(), []store.Lease{r.Lease()}, -time.Second) }},
		"kept":      {then: end(store.Completed, time.Hour)},
		"released":  {then: end(store.Released, time.Hour)},
		"parked":    {then: end(store.Unknown, 0)},
		"completed": {gone: true, then: end(store.Completed, 0)},
		"failed":    {gone: true, then: end(store.Failed, 0)},
	} {
		r := claim(t, s, name)
		c.then(r)
		record, _ := s.name(r.Key.Digest())
		is := s.onNode(t.Context(), node{on: s.client}, &s.scripts.sweep, []string{record})[0]
		_, handed := is.val.(string)
		if is.err != nil || (is.val == int64(1)) != c.gone || handed != c.lapsed {
			t.Errorf("%s: a %T, error %v; deleted must be %v, handed back %v", name, is.val, is.err, c.gone, c.lapsed)
		}
		if _, err := s.Get(t.Context(), r.Key); errors.Is(err, store.ErrNotFound) != c.gone {
			t.Errorf("%s: %v", name, err)
		}
	}
}

// While a refused claim waited, its lease lapsed, and another took over.
func TestWhatAnotherHasTakenIsNotUndone(t *testing.T) {
	s, other := doubtful(t)
	var taken store.Record
	s.client.AddHook(&waitHook{after: func(int) int64 {
		now := get(t, other, "k")
		f, err := other.Swap(t.Context(), now.Seen(), proposal("k"))
		if err != nil || !f.Won {
			t.Errorf("won %v, error %v", f.Won, err)
		}
		taken = f.Record
		return 0
	}})
	if f, err := s.Claim(t.Context(), proposal("k")); !errors.Is(err, ErrNotAcknowledged) || f.Won {
		t.Errorf("won %v, error %v", f.Won, err)
	}
	if got := get(t, other, "k"); got.Owner != taken.Owner || got.Fence != taken.Fence {
		t.Errorf("it is %+v, and was %+v", got, taken)
	}
}

// The caller leaves while nobody acknowledges its claim.
func TestARefusedClaimIsUndoneThoughItsCallerHasLeft(t *testing.T) {
	s, other := doubtful(t)
	ctx, leave := context.WithCancel(t.Context())
	s.client.AddHook(&waitHook{after: func(int) int64 {
		leave()
		return 0
	}})
	if f, err := s.Claim(ctx, proposal("k")); err == nil || f.Won {
		t.Errorf("won %v, error %v", f.Won, err)
	}
	if _, err := other.Get(t.Context(), testKey("k")); !errors.Is(err, store.ErrNotFound) {
		t.Errorf("it is still there: %v", err)
	}
}

// What a swap replaced whose first sending had no answer is not known any more:
// it is no record that was new, and must not be deleted as one.
func TestASwapThatFindsItselfUnacknowledgedStays(t *testing.T) {
	s, other := doubtful(t)
	old := claim(t, other, "k")
	if err := other.Settle(t.Context(), old.Lease(), store.Settlement{State: store.Unknown, Attempt: 1}); err != nil {
		t.Fatal(err)
	}
	parked, p := get(t, other, "k"), proposal("k")
	if f, err := other.Swap(t.Context(), parked.Seen(), p); err != nil || !f.Won {
		t.Fatalf("won %v, error %v", f.Won, err)
	}
	if f, err := s.Swap(t.Context(), parked.Seen(), p); !errors.Is(err, ErrNotAcknowledged) || f.Won {
		t.Errorf("won %v, error %v", f.Won, err)
	}
	if got := get(t, other, "k"); got.Owner != p.Owner || got.State != store.Processing {
		t.Errorf("it is %+v", got)
	}
}

// A key that begins anew, long after Redis should have removed it, is given
// back to Redis: nothing runs on the refused claim.
func TestARefusedRestartOfWhatIsLongOverIsUndone(t *testing.T) {
	o := Options{Prefix: newPrefix(), Replicas: 1, AckTimeout: 10 * time.Millisecond}
	name := o.Prefix + "clock"
	o.clock = "tonumber(redis.call('GET', " + strconv.Quote(name) + "))"
	s := openNew(t, &o)
	s.client.Set(t.Context(), name, 1_700_000_000_000_000, 0)
	other := openOn(t, s.client, &Options{Prefix: o.Prefix, clock: o.clock})
	old := complete(t, other, "k", "x") // for an hour, and one to linger
	s.client.IncrBy(t.Context(), name, (3 * time.Hour).Microseconds())
	p := proposal("k")
	p.Restart = true
	if f, err := s.Swap(t.Context(), old.Seen(), p); !errors.Is(err, ErrNotAcknowledged) || f.Won {
		t.Errorf("won %v, error %v", f.Won, err)
	}
	if f, err := other.Get(t.Context(), p.Key); !errors.Is(err, store.ErrNotFound) && (err != nil || f.Record.Owner != old.Owner) {
		t.Errorf("it is %+v, error %v", f.Record, err)
	}
}
