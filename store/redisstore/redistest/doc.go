// Package redistest runs private Redis servers for tests, from the programs that
// this machine has: one server, a cluster, or a master with a replica and a
// Sentinel. It is for tests only.
//
// A server listens on the loopback interface, keeps its data in a directory of
// its own, and on Linux dies with the test process, however that ends.
// [Server.Kill] and [Server.Start] crash a server and start it again.
//
// If there is no redis-server, tests are skipped with a message; if
// SEMEL_TEST_REQUIRE is 1, they fail. SEMEL_TEST_REDIS_BIN names the program,
// such as a valkey-server. SEMEL_TEST_REDIS_URL names a server that replaces the
// shared one, for tests that do not kill it.
package redistest
