package verify

import "context"

// check is one claim about a store, and how it is tried. Run reports
// violations to the probe; its error says why the claim could not be tried.
type check struct {
	name  string
	claim string
	run   func(ctx context.Context, p *probe) error
}

// checks are all of them, in the order in which they run: what is cheap and
// tells most comes first.
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

// Names are those of the checks, in their order.
func Names() []string {
	names := make([]string, len(checks))
	for i, c := range checks {
		names[i] = c.name
	}
	return names
}

// Claims are what the checks of Names try.
func Claims() []string {
	claims := make([]string, len(checks))
	for i, c := range checks {
		claims[i] = c.claim
	}
	return claims
}
