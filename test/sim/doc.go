// Package sim runs real Guards over the memory store in virtual time. One seeded
// scheduler delivers every message between them, and a ledger checks the effects
// and the answers. The package has only tests.
//
//	go test ./sim -run TestCampaign_Seeds_RulesHold -seed 17 -v
//
// prints all events of one seed. The same seed has the same events.
package sim
