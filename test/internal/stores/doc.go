// Package stores opens each kind of store for the tests of this module, with the
// servers that it needs. A test whose server is not installed is skipped.
//
// [SQLite], [Redis] and [Postgres] open an empty store; the tests of a process
// share one server of a kind. [Backends] are stores with servers that a test may
// kill, and that other processes open by URL.
package stores
