// Package storm runs Guards of several processes over each store, in real time,
// while all that can go wrong goes wrong at once: calls of the store fail before
// or after they took effect, come late, twice, or hang; renewals fail; callers
// leave; handlers fail in all their ways; sweepers, operators and reconcilers
// come in between. At the end a judge compares what callers were told, what the
// handlers did and what the store holds. It has only tests.
//
// Each of these things has tests of its own, the simulator has most of them in
// virtual time over the memory store, and package chaos kills real processes.
// Here they meet, by the thousand, where goroutines and servers are real.
//
//	SEMEL_TEST_STORM=7,20 go test ./storm -run TestStorm_OneOutcomePerKey/redis
//
// has the storms of 20 seeds from 7 on. A seed says what is tried, but not in
// which order the machine runs it.
package storm
