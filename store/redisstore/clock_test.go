package redisstore

import (
	"errors"
	"strconv"
	"testing"
	"time"

	"github.com/semel-go/semel/store"
)

// A jump of the clock that the scripts read, forward and back: a live claim is never
// granted twice at the old fence, and an owner's settlement is refused if
// another has taken over.
func TestServerClock_ScriptClockJumps_LeasesAndFencesHold(t *testing.T) {
	o := Options{Prefix: newPrefix()}
	name := o.Prefix + "offset"
	o.clock = "(" + wallClock + " + tonumber(redis.call('GET', " + strconv.Quote(name) + ") or 0))"
	s := openNew(t, &o)
	set := func(offset time.Duration) {
		t.Helper()
		if err := s.client.Set(t.Context(), name, offset.Microseconds(), 0).Err(); err != nil {
			t.Fatal(err)
		}
	}
	last := uint64(0)
	higher := func(what string, r store.Record) {
		t.Helper()
		if r.Fence <= last {
			t.Errorf("%s: fence %d after %d", what, r.Fence, last)
		}
		last = r.Fence
	}
	first := claim(t, s, "k")
	higher("a claim", first)
	set(2 * time.Hour) // the lease of a minute is over, too early
	f, err := s.Claim(t.Context(), proposal("k"))
	if err != nil || f.Won || !f.Record.Lapsed(f.Now) {
		t.Fatalf("won %v, error %v, lapsed %v", f.Won, err, f.Record.Lapsed(f.Now))
	}
	taken, err := s.Swap(t.Context(), f.Record.Seen(), proposal("k"))
	if err != nil || !taken.Won {
		t.Fatalf("won %v, error %v", taken.Won, err)
	}
	higher("a take-over", taken.Record)
	if err := s.Settle(t.Context(), first.Lease(), completion("zombie")); !errors.Is(err, store.ErrLeaseLost) {
		t.Errorf("the first owner settles: %v", err)
	}
	set(-24 * time.Hour) // the fence is ahead of the clock now
	if f, err := s.Claim(t.Context(), proposal("k")); err != nil || f.Won || f.Record.Lapsed(f.Now) {
		t.Errorf("after the clock was set back: won %v, error %v", f.Won, err)
	}
	next, err := s.Swap(t.Context(), taken.Record.Seen(), proposal("k"))
	if err != nil || !next.Won {
		t.Fatalf("won %v, error %v", next.Won, err)
	}
	higher("a swap", next.Record)
	end := completion("x")
	end.Keep = time.Minute
	if err := s.Settle(t.Context(), next.Record.Lease(), end); err != nil {
		t.Fatal(err)
	}
	// Redis removes the record without a sweep while the clock is still below
	// the fence.
	record, _ := s.name(next.Record.Key.Digest())
	if n, err := s.client.Del(t.Context(), record).Result(); err != nil || n != 1 {
		t.Fatalf("removed %d, error %v", n, err)
	}
	higher("a claim after Redis removed the record", claim(t, s, "k"))
}

// Redis keeps an expired record for Linger, so that a sweep comes first; its
// expiry is never before the record's own.
func TestRecord_Ended_RedisExpiresItAfterLinger(t *testing.T) {
	s := openNew(t, &Options{Linger: 10 * time.Minute})
	for _, state := range []store.State{store.Completed, store.Failed, store.Released} {
		for _, keep := range []time.Duration{0, time.Hour, 200 * 365 * 24 * time.Hour} {
			name := state.String() + keep.String()
			r := claim(t, s, name)
			end := completion("x")
			end.State, end.Keep = state, keep
			if err := s.Settle(t.Context(), r.Lease(), end); err != nil {
				t.Fatal(err)
			}
			record, _ := s.name(r.Key.Digest())
			ttl := s.client.PTTL(t.Context(), record).Val()
			if want := keep + 10*time.Minute; ttl <= want-time.Minute || ttl > want+time.Second {
				t.Errorf("%s: Redis keeps it for %v, want %v", name, ttl, want)
			}
		}
	}
	r := claim(t, s, "back") // a released key that is claimed again is in flight
	if err := s.Settle(t.Context(), r.Lease(), store.Settlement{State: store.Released, Keep: time.Hour}); err != nil {
		t.Fatal(err)
	}
	r = get(t, s, "back")
	if f, err := s.Swap(t.Context(), r.Seen(), proposal("back")); err != nil || !f.Won {
		t.Fatalf("won %v, error %v", f.Won, err)
	}
	record, _ := s.name(r.Key.Digest())
	if ttl := s.client.PTTL(t.Context(), record).Val(); ttl != -1 {
		t.Errorf("a claimed record has an expiry of Redis: %v", ttl)
	}
}
