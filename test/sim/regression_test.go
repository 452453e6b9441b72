package sim

import "testing"

// Seeds that have shown a fault, with the fault. In the version before its fix, a
// seed shows the fault again.
var remembered = map[uint64]string{
	102:                 "Semel: a reservation hid from park that an attempt had failed under retry, and the effect came twice",
	1795198146965846197: "the oracle: a clock set forward ends a lease before its owner can know, and a run that the bank refuses begins",
	1795198146966191836: "the oracle: the same, after an operator's no",
}

// A seed of an earlier plan showed a sweep that ended the reruns of a call for good. A sweep
// has no limit of attempts any more.
func TestRememberedSeeds_RulesHold(t *testing.T) {
	for seed, showed := range remembered {
		if r := play(t, seed, &settings{}); len(r.bad) > 0 {
			t.Errorf("seed %d, which once showed %s: %q\n%s", seed, showed, r.bad, replay(seed))
		}
	}
}

// The same, of plans with many steps.
func TestRememberedSeedsOfSteps_RulesHold(t *testing.T) {
	for seed, showed := range map[uint64]string{
		34133: "the oracle: a key began anew within one microsecond, with the name of the life before, whose payload was another",
		40651: "the oracle: the same",
	} {
		if r := play(t, seed, &settings{tune: stepping}); len(r.bad) > 0 {
			t.Errorf("seed %d, which once showed %s: %q", seed, showed, r.bad)
		}
	}
}
