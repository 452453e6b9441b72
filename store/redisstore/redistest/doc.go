// Package redistest runs private Redis servers for tests, from the programs
// that the machine has: one server, a cluster, or a master with a replica and
// a Sentinel. It is for tests only.
//
// A server listens on the loopback interface, keeps its data in a directory of
// its own, and dies with the test process, however that ends. [Server.Kill]
// and [Server.Start] crash it and bring it back.
//
// Where there is no redis-server, tests are skipped, loudly; with
// SEMEL_TEST_REQUIRE=1 they fail. SEMEL_TEST_REDIS_URL names a server to use
// instead of the shared one, for tests that need not kill it;
// SEMEL_TEST_REDIS_BIN names the program, such as a valkey-server.
package redistest
