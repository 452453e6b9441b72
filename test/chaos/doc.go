// Package chaos kills, freezes and disconnects real processes that share a real
// store, and fills their disks. A ledger that does not know Semel counts the
// effects, and the tests compare it with the answers and the records. The package
// has only tests, and kills only processes that it has started.
//
// Every test runs against each store of stores.Backends, and the tests that kill
// a server against each store that has one.
package chaos
