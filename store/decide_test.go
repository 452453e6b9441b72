package store_test

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/semel-go/semel/store"
)

// expectations is what a call has to do, written down apart from the code.
// Time: "live" is before Until (before Expires where there is no Until), "up"
// is from Until on, "over" is from Expires on. Token: "-" is none, "own" is
// that of this record. "run" is what attempts can exhaust.
const expectations = `
started    live  -    busy            busy
started    live  own  run:execute     run:execute
started    up    -    run:execute     run:execute
started    up    own  run:execute     run:execute
processing live  -    busy            busy
processing live  own  busy            busy
processing up    -    run:take_over   park
processing up    own  run:take_over   park
released   live  -    busy            busy
released   live  own  busy            busy
released   up    -    run:execute     run:execute
released   up    own  run:execute     run:execute
released   over  -    anew            anew
released   over  own  expired         expired
completed  live  -    replay          replay
completed  live  own  replay          replay
completed  over  -    anew            anew
completed  over  own  expired         expired
failed     live  -    replay_failure  replay_failure
failed     live  own  replay_failure  replay_failure
failed     over  -    anew            anew
failed     over  own  expired         expired
unknown    live  -    parked          parked
unknown    live  own  parked          parked
`

var noon = time.Date(2026, 11, 20, 12, 0, 0, 0, time.UTC)

// recordIn is a record in a state, whose Until is in a minute and whose
// Expires is in an hour, as far as it has them.
func recordIn(s store.State) store.Record {
	r := store.Record{
		Key: store.Key{Operation: "op", Tenant: "t", Value: "k"}, State: s, Fence: 7, Owner: store.Owner{1}, Attempt: 1,
		Created: noon.Add(-time.Minute), Updated: noon, Format: store.Format,
		Fingerprint: store.Fingerprint{Alg: "sha256", KeyID: "k1", Sum: "sum"},
	}
	switch s {
	default: // Unknown has no end
	case store.Started, store.Processing:
		r.Until = noon.Add(time.Minute)
	case store.Released:
		r.Until, r.Expires = noon.Add(time.Minute), noon.Add(time.Hour)
	case store.Completed, store.Failed:
		r.Completed, r.Expires = noon, noon.Add(time.Hour)
	}
	return r
}

// moments are the instants that belong to a time of the table.
func moments(r *store.Record, when string) []time.Time {
	const tick = time.Microsecond
	switch {
	case r.State == store.Unknown:
		return []time.Time{noon, noon.Add(100 * 365 * 24 * time.Hour)}
	case when == "over":
		return []time.Time{r.Expires, r.Expires.Add(tick), r.Expires.Add(24 * time.Hour)}
	case when == "live" && !r.Until.IsZero():
		return []time.Time{r.Updated, r.Until.Add(-tick)}
	case when == "live":
		return []time.Time{r.Updated, r.Expires.Add(-tick)}
	case !r.Expires.IsZero():
		return []time.Time{r.Until, r.Until.Add(tick), r.Expires.Add(-tick)}
	}
	return []time.Time{r.Until, r.Until.Add(tick), r.Until.Add(24 * time.Hour)}
}

// expect reads one cell of the table for a call.
func expect(cell string, r *store.Record, c *store.Call, both store.Policy) store.Decision {
	actions := map[string]store.Action{
		"busy": store.InProgress, "execute": store.Execute, "take_over": store.TakeOver, "park": store.DoPark, "parked": store.Parked,
		"replay": store.Replay, "replay_failure": store.ReplayFailure, "expired": store.Expired,
	}
	what, runs := strings.CutPrefix(cell, "run:")
	switch {
	case r.Attempt > 0 && both != r.Policy && (what == "execute" || r.State == store.Released && cell == "busy"):
		return store.Decision{Action: store.DoPark, Policy: both} // what failed under Retry was doubt
	case cell == "anew":
		return store.Decision{Action: store.Execute, Policy: c.Policy, Restart: true}
	case cell == "expired":
		return store.Decision{Action: store.Expired, Policy: c.Policy}
	case cell == "busy":
		return store.Decision{Action: store.InProgress, Policy: both, Until: r.Until}
	case runs && c.MaxAttempts != 0 && r.Attempt >= c.MaxAttempts:
		return store.Decision{Action: store.Exhausted, Policy: both}
	}
	return store.Decision{Action: actions[what], Policy: both}
}

func TestDecide_EachCase_MatchesTable(t *testing.T) {
	policies := []store.Policy{store.Retry, store.Park}
	cases := 0
	for _, line := range strings.Split(strings.TrimSpace(expectations), "\n") {
		col := strings.Fields(line)
		var s store.State
		if err := s.UnmarshalText([]byte(col[0])); err != nil || len(col) != 5 {
			t.Fatalf("line %q: %v", line, err)
		}
		for _, of := range policies {
			for _, by := range policies {
				for _, attempt := range []int{0, 1, 2, 3} {
					for _, most := range []int{0, 1, 2, 3} {
						r, c := recordIn(s), store.Call{Policy: by, MaxAttempts: most}
						r.Policy, r.Attempt = of, attempt
						both := max(of, by) // the stricter
						if col[2] == "own" {
							c.Token = r.Created
						} else {
							c.Fingerprint = r.Fingerprint
						}
						for _, now := range moments(&r, col[1]) {
							want := expect(col[3+int(both)], &r, &c, both)
							if got := store.Decide(&r, &c, now); got != want {
								t.Errorf("%s, policies %v and %v, attempt %d of %d, at %v:\n got %+v\nwant %+v", line, of, by, attempt, most, now, got, want)
							}
							cases++
						}
					}
				}
			}
		}
	}
	if cases < 3000 {
		t.Errorf("only %d cases", cases)
	}
}

func TestDecide_FingerprintDiffers_RefusedInEachState(t *testing.T) {
	same := recordIn(store.Completed).Fingerprint
	for name, c := range map[string]struct {
		print store.Fingerprint
		want  store.Action
	}{
		"another payload":   {store.Fingerprint{Alg: same.Alg, KeyID: same.KeyID, Sum: "other"}, store.Mismatch},
		"a longer sum":      {store.Fingerprint{Alg: same.Alg, KeyID: same.KeyID, Sum: same.Sum + "\x00"}, store.Mismatch},
		"no sum":            {store.Fingerprint{Alg: same.Alg, KeyID: same.KeyID}, store.Mismatch},
		"another way":       {store.Fingerprint{Alg: "md5", KeyID: same.KeyID, Sum: same.Sum}, store.Unverifiable},
		"another secret":    {store.Fingerprint{Alg: same.Alg, KeyID: "k2", Sum: same.Sum}, store.Unverifiable},
		"no secret":         {store.Fingerprint{Alg: same.Alg, Sum: same.Sum}, store.Unverifiable},
		"no payload at all": {store.Fingerprint{}, store.Unverifiable},
	} {
		for s := store.Started; s <= store.Unknown; s++ {
			for _, p := range []store.Policy{store.Retry, store.Park} {
				r := recordIn(s)
				call := store.Call{Fingerprint: c.print, Policy: p, MaxAttempts: 1}
				for _, now := range append(moments(&r, "live"), moments(&r, "up")...) {
					if r.Expired(now) {
						continue
					}
					if got := store.Decide(&r, &call, now); got != (store.Decision{Action: c.want, Policy: p}) {
						t.Errorf("%v record, %s, at %v: %+v, want %v", s, name, now, got, c.want)
					}
				}
				// An expired record is nobody's, and a bearer was compared before.
				if !r.Expires.IsZero() {
					if got := store.Decide(&r, &call, r.Expires); got.Action != store.Execute || !got.Restart {
						t.Errorf("expired %v record, %s: %+v, want to execute anew", s, name, got)
					}
				}
				call.Token = r.Created
				if got := store.Decide(&r, &call, r.Updated); got.Action == store.Mismatch || got.Action == store.Unverifiable {
					t.Errorf("%v record, %s, with a token: %+v", s, name, got)
				}
			}
		}
	}
	r := recordIn(store.Completed)
	r.Fingerprint = store.Fingerprint{}
	if got := store.Decide(&r, &store.Call{}, noon); got.Action != store.Replay {
		t.Errorf("two calls without a payload: %v, want a replay", got.Action)
	}
}

func TestDecide_TokenOfOtherReservation_IsExpired(t *testing.T) {
	for s := store.Started; s <= store.Unknown; s++ {
		r := recordIn(s)
		for _, other := range []time.Time{r.Created.Add(time.Microsecond), r.Created.Add(-time.Hour), noon.Add(time.Hour)} {
			c := store.Call{Policy: store.Park, Token: other, Fingerprint: r.Fingerprint}
			if got := store.Decide(&r, &c, noon); got != (store.Decision{Action: store.Expired, Policy: store.Park}) {
				t.Errorf("%v record, the token of another reservation: %+v, want Expired", s, got)
			}
		}
		c := store.Call{Token: r.Created.In(time.FixedZone("elsewhere", 7200))}
		if got := store.Decide(&r, &c, noon); got.Action == store.Expired {
			t.Errorf("%v record, its own token in another zone: %+v", s, got)
		}
	}
}

// senseless are records that no store has written.
func senseless() map[string]store.Record {
	m := map[string]store.Record{"the zero record": {}}
	add := func(name string, s store.State, change func(r *store.Record)) {
		r := recordIn(s)
		change(&r)
		m[fmt.Sprintf("%v: %s", s, name)] = r
	}
	for _, s := range []store.State{0, 7, 255} {
		add("no such state", s, func(*store.Record) {})
		add("no such state, expired", s, func(r *store.Record) { r.Expires = noon })
	}
	for s := store.Started; s <= store.Unknown; s++ {
		add("no such policy", s, func(r *store.Record) { r.Policy = 2 })
		if recordIn(s).Expires.IsZero() {
			add("expires", s, func(r *store.Record) { r.Expires = noon.Add(-time.Hour) })
		} else {
			add("never expires", s, func(r *store.Record) { r.Expires = time.Time{} })
		}
	}
	return m
}

func TestDecide_RecordContradictsItself_IsCorrupt(t *testing.T) {
	corrupt := store.Decision{Action: store.Corrupt, Policy: store.Park}
	for name, r := range senseless() {
		for _, c := range []store.Call{{Fingerprint: r.Fingerprint}, {Token: r.Created}, {Token: noon}, {Policy: store.Park, MaxAttempts: 1}} {
			for _, now := range []time.Time{{}, noon, noon.Add(24 * time.Hour)} {
				if got := store.Decide(&r, &c, now); got != corrupt {
					t.Errorf("%s, call %+v at %v: %+v, want Corrupt", name, c, now, got)
				}
			}
		}
	}
}

func TestAction_Each_HasName(t *testing.T) {
	seen := map[string]bool{}
	for a := store.Execute; a <= store.Corrupt; a++ {
		if seen[a.String()] || strings.HasPrefix(a.String(), "Action(") || a.String() == "" {
			t.Errorf("action %d is called %q", uint8(a), a)
		}
		seen[a.String()] = true
	}
	for _, a := range []store.Action{0, store.Corrupt + 1, 255} {
		if want := fmt.Sprintf("Action(%d)", uint8(a)); a.String() != want {
			t.Errorf("action %d is called %q, want %q", uint8(a), a, want)
		}
	}
}
