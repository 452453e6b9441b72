package store_test

import (
	"math/rand/v2"
	"testing"
	"time"

	"github.com/semel-go/semel/store"
)

// anyCase is a record, a call and a time, any of which may be invalid.
type anyCase struct {
	r   store.Record
	c   store.Call
	now time.Time
}

// draw makes a case from numbers. Small numbers make equal times and fingerprints.
func draw(state, policies, prints, attempts, token uint8, until, expires, now int16) anyCase {
	timeOf := func(n int16) time.Time { // 0 is the zero time
		if n == 0 {
			return time.Time{}
		}
		return noon.Add(time.Duration(n) * time.Microsecond)
	}
	fingerprint := func(n uint8) store.Fingerprint {
		return store.Fingerprint{Alg: string('a' + rune(n&1)), KeyID: string('k' + rune(n>>1&1)), Sum: string('s' + rune(n>>2&1))}
	}
	c := anyCase{
		r: store.Record{
			State: store.State(state), Policy: store.Policy(policies & 3), Attempt: int(attempts & 3), Fingerprint: fingerprint(prints),
			Until: timeOf(until), Expires: timeOf(expires), Created: noon, Fence: 1, Owner: store.Owner{1},
		},
		c:   store.Call{Policy: store.Policy(policies >> 2 & 1), MaxAttempts: int(attempts >> 2 & 3), Fingerprint: fingerprint(prints >> 3)},
		now: noon.Add(time.Duration(now) * time.Microsecond),
	}
	switch token % 4 {
	case 1:
		c.c.Token = noon
	case 2:
		c.c.Token = noon.Add(time.Microsecond)
	}
	return c
}

// check names the rule that the decision breaks. Empty: none.
func (c anyCase) check() string {
	r, call := c.r, c.c
	d := store.Decide(&c.r, &c.c, c.now)
	if d != store.Decide(&c.r, &c.c, c.now) {
		return "a second decision of the same case differs"
	}
	if c.r.Seen() != r.Seen() || c.r.Attempt != r.Attempt || c.r.Policy != r.Policy || c.r.Fingerprint != r.Fingerprint || c.c != call {
		return "Decide has changed the record or the call"
	}
	bearer, runs := !call.Token.IsZero(), d.Action == store.Execute || d.Action == store.TakeOver
	over := !r.Expires.IsZero() && !c.now.Before(r.Expires)
	live := c.now.Before(r.Until)
	failed := r.Attempt > 0 && r.Policy == store.Retry && call.Policy == store.Park && (r.State == store.Released || r.State == store.Started)
	switch {
	case d.Action < store.Execute || d.Action > store.Corrupt:
		return "no such action"
	case runs && r.State.Terminal() && !over:
		return "a terminal record runs again before it expires"
	case runs && r.State == store.Unknown:
		return "a parked record runs"
	case (runs || d.Action == store.DoPark || d.Action == store.Exhausted) && r.State == store.Processing && live:
		return "a live claim is taken over, parked or failed"
	case runs && r.State == store.Started && live && !bearer:
		return "a call without the token runs a live reservation"
	case runs && r.State == store.Released && live && !over:
		return "a released record runs before Until"
	case d.Action == store.DoPark && (live || r.State != store.Processing) && !failed:
		return "a record is parked without doubt"
	case runs && !d.Restart && failed:
		return "a call that failed under Retry runs under Park"
	case d.Action == store.TakeOver && (r.Policy == store.Park || call.Policy == store.Park):
		return "a claim is taken over under Park"
	case runs && !d.Restart && call.MaxAttempts > 0 && r.Attempt >= call.MaxAttempts:
		return "more attempts than MaxAttempts"
	case runs && !d.Restart && !bearer && r.Fingerprint != call.Fingerprint:
		return "a call with another payload runs"
	case (d.Action == store.Replay) != (r.State == store.Completed) && d.Action == store.Replay,
		d.Action == store.ReplayFailure && r.State != store.Failed, d.Action == store.Parked && r.State != store.Unknown:
		return "the action is that of another state"
	case d.Restart && (d.Action != store.Execute || !over || bearer):
		return "Restart of a record that has not expired, or with a token"
	case (d.Action == store.Replay || d.Action == store.ReplayFailure) && over:
		return "an expired outcome is replayed"
	case runs && bearer && !call.Token.Equal(r.Created):
		return "the token of another reservation runs"
	case (d.Action == store.InProgress) != !d.Until.IsZero(), d.Action == store.InProgress && !d.Until.After(c.now):
		return "Until is missing, or is not in the future"
	case runs && (!r.State.Valid() || r.Policy > store.Park):
		return "a record with an invalid state or policy runs"
	case d.Policy != store.Park && (call.Policy == store.Park || r.Policy == store.Park && !over && d.Action != store.Expired):
		return "the policy is weaker than the record's or the call's"
	}
	return c.checkOtherFields(d)
}

// checkOtherFields checks that the decision does not depend on any other field.
func (c anyCase) checkOtherFields(d store.Decision) string {
	r := c.r
	r.Key.Value, r.Fence, r.Owner, r.Holder, r.LastError = "other", 99, store.Owner{9}, "holder", "error"
	r.Updated, r.Completed, r.Outcome = noon, noon, store.Outcome{Code: 1, Gone: true}
	if store.Decide(&r, &c.c, c.now) != d {
		return "the decision depends on a field that it must not use"
	}
	return ""
}

func TestDecide_RandomCases_KeepRules(t *testing.T) {
	rng := rand.New(rand.NewPCG(1, 2))
	seen := map[store.Action]int{}
	for range 300_000 {
		u8 := func() uint8 { return uint8(rng.Uint32()) }
		smallNumber := func() int16 { return int16(rng.IntN(9) - 4) }
		prints := uint8(1) << rng.IntN(12) // at most one field of the fingerprints differs
		c := draw(u8()%9, u8()&5, prints, u8(), u8(), smallNumber(), smallNumber(), smallNumber())
		if bad := c.check(); bad != "" {
			t.Fatalf("%s: record %+v, call %+v, at %v: %+v", bad, c.r, c.c, c.now, store.Decide(&c.r, &c.c, c.now))
		}
		seen[store.Decide(&c.r, &c.c, c.now).Action]++
	}
	for a := store.Execute; a <= store.Corrupt; a++ {
		if seen[a] == 0 {
			t.Errorf("no case has the decision %v", a)
		}
	}
}

// If a record may run, it may also run later: no decision becomes InProgress again as
// time passes.
func TestDecide_TimePasses_NeverHeldAgain(t *testing.T) {
	for s := store.Started; s <= store.Unknown; s++ {
		r := recordIn(s)
		c := store.Call{Fingerprint: r.Fingerprint}
		order := map[store.Action]int{store.InProgress: 0, store.Replay: 0, store.ReplayFailure: 0, store.Parked: 0, store.TakeOver: 1, store.Execute: 1}
		last := 0
		for d := -2 * time.Minute; d < 2*time.Hour; d += 30 * time.Second {
			now := order[store.Decide(&r, &c, noon.Add(d)).Action]
			if now < last {
				t.Errorf("a %v record that could run before cannot run at %v", s, d)
			}
			last = now
		}
	}
}

func FuzzDecide(f *testing.F) {
	f.Add(uint8(store.Processing), uint8(0), uint8(0), uint8(0), uint8(0), int16(1), int16(0), int16(1))
	f.Add(uint8(store.Completed), uint8(1), uint8(9), uint8(5), uint8(1), int16(0), int16(3), int16(2))
	f.Add(uint8(0), uint8(3), uint8(0), uint8(0), uint8(2), int16(0), int16(0), int16(0))
	f.Fuzz(func(t *testing.T, state, policies, prints, attempts, token uint8, until, expires, now int16) {
		c := draw(state, policies, prints, attempts, token, until, expires, now)
		if bad := c.check(); bad != "" {
			t.Fatalf("%s: record %+v, call %+v, at %v: %+v", bad, c.r, c.c, c.now, store.Decide(&c.r, &c.c, c.now))
		}
	})
}
