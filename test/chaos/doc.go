// Package chaos kills, freezes, cuts off and starves real processes that share
// a real store, and checks what is left against a ledger that knows nothing of
// Semel. It has only tests; it kills only what it started.
//
// A store joins by an entry in the table of backend_test.go. Then every test
// of the package runs against it, and those for servers too if it has one.
package chaos
