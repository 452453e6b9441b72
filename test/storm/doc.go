// Package storm runs the Guards of several simulated processes over each store, in
// real time, with all kinds of faults at once: calls of the store fail before or
// after they take effect, come late, come twice, or hang; renewals fail; callers
// leave; handlers fail; sweepers, operators and reconcilers act at the same time.
// At the end a judge compares the answers that callers got, the effects of the
// handlers, and the records of the store. The package has only tests.
//
// Other tests have each of these faults alone. Package sim combines most of them
// in virtual time over the memory store, and package chaos kills real processes.
// Storms combine them with real goroutines and real servers.
//
//	SEMEL_TEST_STORM=7,20 go test ./storm -run TestStorm_OneOutcomePerKey/redis
//
// runs the storms of 20 seeds from 7 on. A seed determines the calls and the
// faults, but not the order in which the machine runs them.
package storm
