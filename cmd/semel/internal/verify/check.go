package verify

import "context"

// check is one claim about a store, and how it is tried. Run reports
// violations to the probe; its error says why the claim could not be tried.
type check struct {
	name  string
	claim string
	run   func(ctx context.Context, p *probe) error
}

// checks lists all checks in the order in which they run: cheap checks that find
// most faults come first.
var checks = []check{
	settingsCheck,
	clockCheck,
	claimRace,
	strangersCheck,
	swapRace,
	settleRace,
	processRace,
	lostReplies,
	lateMessages,
	zombieCheck,
	expiryCheck,
	doubtCheck,
	dataCheck,
	keysCheck,
	guardCheck,
	latencyCheck,
}

// Names returns the names of the checks, in their order.
func Names() []string {
	names := make([]string, len(checks))
	for i, c := range checks {
		names[i] = c.name
	}
	return names
}

// Claims returns the claims that the checks test, in the order of Names.
func Claims() []string {
	claims := make([]string, len(checks))
	for i, c := range checks {
		claims[i] = c.claim
	}
	return claims
}
