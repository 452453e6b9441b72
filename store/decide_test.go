package store_test

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/semel-go/semel/store"
)

// expectations is the table of all decisions, written independently of the code. Its
// columns are the state, the time, the token of the call, and the decision under
// Retry and under Park.
//
// Time: "live" is before Until, or before Expires if there is no Until; "up" is from
// Until on; "over" is from Expires on. Token: "-" is none, "own" is the token of this
// record. A decision that begins with "run:" becomes Exhausted if no attempt is left.
// "restart" is Execute with Restart.
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
released   over  -    restart         restart
released   over  own  expired         expired
completed  live  -    replay          replay
completed  live  own  replay          replay
completed  over  -    restart         restart
completed  over  own  expired         expired
failed     live  -    replay_failure  replay_failure
failed     live  own  replay_failure  replay_failure
failed     over  -    restart         restart
failed     over  own  expired         expired
unknown    live  -    parked          parked
unknown    live  own  parked          parked
`

var noon = time.Date(2026, 11, 20, 12, 0, 0, 0, time.UTC)

// recordIn is a record in a state. If the state has an Until it is in a minute, and
// if it has an Expires it is in an hour.
func recordIn(s store.State) store.Record {
	r := store.Record{
		Key: store.Key{Operation: "op", Tenant: "t", Value: "k"}, State: s, Fence: 7, Owner: store.Owner{1}, Attempt: 1,
		Created: noon.Add(-time.Minute), Updated: noon, Format: store.Format,
		Fingerprint: store.Fingerprint{Alg: "sha256", KeyID: "k1", Sum: "sum"},
	}
	switch s {
	default: // Unknown has neither
	case store.Started, store.Processing:
		r.Until = noon.Add(time.Minute)
	case store.Released:
		r.Until, r.Expires = noon.Add(time.Minute), noon.Add(time.Hour)
	case store.Completed, store.Failed:
		r.Completed, r.Expires = noon, noon.Add(time.Hour)
	}
	return r
}

// moments are instants that belong to a time of the table, and its limits.
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

// expect is the decision that a cell of the table means for a call.
func expect(cell string, r *store.Record, c *store.Call, stricter store.Policy) store.Decision {
	actions := map[string]store.Action{
		"busy": store.InProgress, "execute": store.Execute, "take_over": store.TakeOver, "park": store.DoPark, "parked": store.Parked,
		"replay": store.Replay, "replay_failure": store.ReplayFailure, "expired": store.Expired,
	}
	action, runs := strings.CutPrefix(cell, "run:")
	switch {
	case r.Attempt > 0 && stricter != r.Policy && (action == "execute" || r.State == store.Released && cell == "busy"):
		return store.Decision{Action: store.DoPark, Policy: stricter} // an attempt that failed under Retry is in doubt
	case cell == "restart":
		return store.Decision{Action: store.Execute, Policy: c.Policy, Restart: true}
	case cell == "expired":
		return store.Decision{Action: store.Expired, Policy: c.Policy}
	case cell == "busy":
		return store.Decision{Action: store.InProgress, Policy: stricter, Until: r.Until}
	case runs && c.MaxAttempts != 0 && r.Attempt >= c.MaxAttempts:
		return store.Decision{Action: store.Exhausted, Policy: stricter}
	}
	return store.Decision{Action: actions[action], Policy: stricter}
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
		for _, ofRecord := range policies {
			for _, ofCall := range policies {
				for _, attempt := range []int{0, 1, 2, 3} {
					for _, limit := range []int{0, 1, 2, 3} {
						r, c := recordIn(s), store.Call{Policy: ofCall, MaxAttempts: limit}
						r.Policy, r.Attempt = ofRecord, attempt
						stricter := max(ofRecord, ofCall)
						if col[2] == "own" {
							c.Token = r.Created
						} else {
							c.Fingerprint = r.Fingerprint
						}
						for _, now := range moments(&r, col[1]) {
							want := expect(col[3+int(stricter)], &r, &c, stricter)
							if got := store.Decide(&r, &c, now); got != want {
								t.Errorf("%s, policies %v and %v, attempt %d of %d, at %v:\n got %+v\nwant %+v", line, ofRecord, ofCall, attempt, limit, now, got, want)
							}
							cases++
						}
					}
				}
			}
		}
	}
	if cases < 3000 {
		t.Errorf("only %d cases, want at least 3000", cases)
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
		"another algorithm": {store.Fingerprint{Alg: "md5", KeyID: same.KeyID, Sum: same.Sum}, store.Unverifiable},
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
				// An expired record counts as absent, and the payload of a reserved call was
				// compared when it was reserved.
				if !r.Expires.IsZero() {
					if got := store.Decide(&r, &call, r.Expires); got.Action != store.Execute || !got.Restart {
						t.Errorf("expired %v record, %s: %+v, want Execute with Restart", s, name, got)
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

// contradictory are records that no store writes.
func contradictory() map[string]store.Record {
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
	for name, r := range contradictory() {
		for _, c := range []store.Call{{Fingerprint: r.Fingerprint}, {Token: r.Created}, {Token: noon}, {Policy: store.Park, MaxAttempts: 1}} {
			for _, now := range []time.Time{{}, noon, noon.Add(24 * time.Hour)} {
				if got := store.Decide(&r, &c, now); got != corrupt {
					t.Errorf("%s, call %+v at %v: %+v, want Corrupt", name, c, now, got)
				}
			}
		}
	}
}

// A claim without Until is corrupt and has not expired. A take-over would run at the
// same time as its owner.
func TestDecide_UntilMissing_IsCorrupt(t *testing.T) {
	for _, s := range []store.State{store.Started, store.Processing, store.Released} {
		for _, p := range []store.Policy{store.Retry, store.Park} {
			r := recordIn(s)
			r.Until = time.Time{}
			for _, c := range []store.Call{{Policy: p, Fingerprint: r.Fingerprint}, {Policy: p, Token: r.Created}} {
				if got := store.Decide(&r, &c, noon); got.Action != store.Corrupt {
					t.Errorf("a %v record without Until, policy %v, token %v: %v, want Corrupt", s, p, !c.Token.IsZero(), got.Action)
				}
			}
		}
	}
}

// An unknown policy counts as Park.
func TestDecide_UnknownPolicyOfCall_CountsAsPark(t *testing.T) {
	r := recordIn(store.Processing)
	c := store.Call{Policy: 7, Fingerprint: r.Fingerprint}
	if got := store.Decide(&r, &c, r.Until); got.Action == store.TakeOver {
		t.Errorf("an expired claim and a call of policy %v: %v, want no take-over", c.Policy, got.Action)
	}
}

func TestAction_Each_HasName(t *testing.T) {
	seen := map[string]bool{}
	for a := store.Execute; a <= store.Corrupt; a++ {
		if seen[a.String()] || strings.HasPrefix(a.String(), "Action(") || a.String() == "" {
			t.Errorf("action %d has the name %q, which is empty or used twice", uint8(a), a)
		}
		seen[a.String()] = true
	}
	for _, a := range []store.Action{0, store.Corrupt + 1, 255} {
		if want := fmt.Sprintf("Action(%d)", uint8(a)); a.String() != want {
			t.Errorf("action %d has the name %q, want %q", uint8(a), a, want)
		}
	}
}

// Nobody knows the payload of a key that was imported.
func TestDecide_AnyPayload_NotCompared(t *testing.T) {
	r := recordIn(store.Completed)
	r.Fingerprint = store.Fingerprint{Alg: store.AnyPayload}
	for _, f := range []store.Fingerprint{{}, {Alg: "sha256", KeyID: "k", Sum: "s"}, {Alg: store.AnyPayload, Sum: "s"}} {
		if d := store.Decide(&r, &store.Call{Fingerprint: f}, r.Completed); d.Action != store.Replay {
			t.Errorf("%+v: %v, want replay", f, d.Action)
		}
	}
	other := recordIn(store.Completed)
	if d := store.Decide(&other, &store.Call{Fingerprint: store.Fingerprint{Alg: store.AnyPayload}}, other.Completed); d.Action != store.Unverifiable {
		t.Errorf("a call cannot say that it has any payload: %v", d.Action)
	}
}
