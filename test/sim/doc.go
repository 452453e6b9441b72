// Package sim runs real Guards over the memory store in virtual time, with one
// seeded scheduler for every message between them, and compares what comes out
// with a ledger of its own. It has only tests.
//
//	go test ./sim -run TestSeeds_RulesHold -seed 17 -v
//
// prints the whole story of one seed. The same seed tells the same story.
package sim
