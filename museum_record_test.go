package semel_test

import (
	"testing"
	"time"

	"github.com/semel-go/semel"
	"github.com/semel-go/semel/store"
)

// Rule 11: what makes no sense is neither run nor replayed nor taken for
// absent.
func TestARecordThatMakesNoSenseIsTouchedByNobody(t *testing.T) {
	now := time.Date(2026, 11, 20, 12, 0, 0, 0, time.UTC)
	past, soon := now.Add(-time.Hour), now.Add(time.Hour)
	for name, r := range map[string]store.Record{
		"no state":                     {Until: past},
		"no state, expired":            {Until: past, Expires: past},
		"a state of a later version":   {State: store.Unknown + 1, Expires: past},
		"a policy of a later version":  {State: store.Released, Policy: store.Park + 1, Until: past, Expires: soon},
		"a running claim that expires": {State: store.Processing, Until: soon, Expires: past},
		"a reservation that expires":   {State: store.Started, Until: soon, Expires: past},
		"a parked record that expires": {State: store.Unknown, Expires: past},
		"an outcome that never does":   {State: store.Completed, Completed: past},
		"a failure that never does":    {State: store.Failed, Completed: past},
		"a pause that never ends":      {State: store.Released, Until: past},
	} {
		for _, policy := range []semel.Policy{semel.Retry, semel.Park} {
			d := store.Decide(&r, &store.Call{Policy: policy, MaxAttempts: 1}, now)
			if d.Action != store.Corrupt || d.Restart {
				t.Errorf("%s, under %v: %+v", name, policy, d)
			}
		}
	}
}

// Rule 5: the clock is in the fence, so that a store that lost its floor, or a
// row that somebody deleted by hand, does not hand out old fences again.
func TestAFenceIsNeverBehindTheClock(t *testing.T) {
	now := time.Date(2026, 11, 20, 12, 0, 0, 0, time.UTC)
	clock := uint64(now.UnixMicro())
	p := store.Proposal{State: store.Processing, Lease: time.Second}
	for _, c := range []struct{ old, want uint64 }{{0, clock}, {1, clock}, {clock - 1, clock}, {clock, clock + 1}, {clock + 5, clock + 6}} {
		if got := p.Insert(now, c.old).Fence; got != c.want {
			t.Errorf("inserted over a floor of %d: fence %d, want %d", c.old, got, c.want)
		}
		if got := p.Replace(&store.Record{Fence: c.old}, now).Fence; got != c.want {
			t.Errorf("swapped for fence %d: fence %d, want %d", c.old, got, c.want)
		}
	}
}

// Section 3: stores find a record by this digest.
func TestTheFieldsOfAKeyDoNotRunIntoEachOther(t *testing.T) {
	seen := map[[32]byte]store.Key{}
	for _, k := range []store.Key{
		{Operation: "a", Tenant: "b", Value: "c"}, {Operation: "ab", Value: "c"}, {Operation: "a", Value: "bc"}, {Tenant: "ab", Value: "c"},
		{Operation: "abc"}, {Tenant: "abc"}, {Value: "abc"}, {Operation: "c", Tenant: "b", Value: "a"}, {},
	} {
		if other, ok := seen[k.Digest()]; ok {
			t.Errorf("%+v and %+v have one digest", k, other)
		}
		seen[k.Digest()] = k
	}
}
